// What scripts say, in the page's language.
const { default: words } = await import(`./words.${document.documentElement.lang}.js`);

export const knows = (name) => name in words;

export function say(name, facts = {}) {
  return words[name].replace(/\{(\w+)\}/g, (_, fact) => String(facts[fact]));
}
