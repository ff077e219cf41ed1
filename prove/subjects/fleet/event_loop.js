// A server of Node's http module, which makes the calls of a request at once and waits for them.
//
// Arguments: port, port of the back end, calls of a request, connections to the back end at most (0: any number).
"use strict";

const http = require("http");

const [port, backEnd, calls, sockets] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: sockets || Infinity });

function get(path) {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: backEnd, path, agent };
    const call = http.get(options, (answer) => {
      let body = "";
      answer.on("data", (bytes) => (body += bytes));
      answer.on("end", () => resolve(body));
    });
    call.on("error", reject);
  });
}

const server = http.createServer(async (request, answer) => {
  const name = request.url.slice(1);
  const results = Array.from({ length: calls }, (_, call) => get(`${request.url}/${call}`));
  try {
    if ((await Promise.all(results)).some((body) => body !== name)) {
      throw new Error("an answer to another request");
    }
    answer.end(name);
  } catch (error) {
    answer.statusCode = 500;
    answer.end(String(error));
  }
});
server.listen(port, "127.0.0.1");
