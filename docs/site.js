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
// Names for what the theme leaves without one, and keyboard focus for tables that scroll.
const name = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search")
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code block ${i + 1}`))
  document.querySelectorAll(".md-typeset__scrollwrap").forEach(wrap => wrap.setAttribute("tabindex", "0"))
}
new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true })
document.addEventListener("DOMContentLoaded", name)
