// What answers the page: the server of `bcn serve`. A static site has its own version of this file, with local.js.

export * from "./server.js";
