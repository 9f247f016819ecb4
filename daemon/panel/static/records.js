const main = document.getElementById("content");
