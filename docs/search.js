// A query such as --map finds the option: lunr would take leading dashes for "without this word".
(() => {
  const post = Worker.prototype.postMessage
  Worker.prototype.postMessage = function (message, ...rest) {
    if (typeof message?.data === "string") {
      message = { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") }
    }
    return post.call(this, message, ...rest)
  }
})()
