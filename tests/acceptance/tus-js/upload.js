// Uploads one file with tus-js-client: node upload.js URL TOKEN FILE STORAGE. Goes on with what STORAGE knows.
const fs = require("fs");
const tus = require("tus-js-client");

const [endpoint, token, path, storage] = process.argv.slice(2);

const upload = new tus.Upload(fs.createReadStream(path), {
  endpoint,
  uploadSize: fs.statSync(path).size,
  chunkSize: 256 * 1024,
  headers: { Authorization: `Bearer ${token}` },
  metadata: { filename: "talk.wav", title: "From JavaScript", filetype: "audio/wav" },
  urlStorage: new tus.FileUrlStorage(storage),
  fingerprint: () => Promise.resolve(`one:${path}`),
  retryDelays: [100, 200, 400, 800, 1600, 3200],
  storeFingerprintForResuming: true,
  onAfterResponse: (_request, response) => {
    const record = response.getHeader("Rubezh-Record");
    if (record) console.log(`record ${record}`);
  },
  onProgress: (sent, all) => console.log(`sent ${sent} of ${all}`),
  onError: (error) => {
    console.error(String(error));
    process.exit(1);
  },
  onSuccess: () => console.log("done"),
});

upload.findPreviousUploads().then((previous) => {
  if (previous.length > 0) {
    console.log(`resuming ${previous[0].uploadUrl}`);
    upload.resumeFromPreviousUpload(previous[0]);
  }
  upload.start();
});
