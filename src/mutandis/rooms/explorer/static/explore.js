// Makes forms live: what they ask for is fetched as they change, and the parts of the page that
// depend on it are exchanged. Without this script, a button does the same.
"use strict";
(() => {
  let waiting;
  let running;

  const addressOf = (form) => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== "") query.append(name, value);
    return `${form.getAttribute("action")}?${query}`;
  };

  const exchange = (page) => {
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) old.replaceWith(document.adoptNode(fresh));
    }
  };

  const refresh = async (form) => {
    const address = addressOf(form);
    running?.abort();
    running = new AbortController();
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { signal: running.signal });
      exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
      history.replaceState(null, "", address);
      form.removeAttribute("aria-busy");
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  };

  document.addEventListener("input", (event) => {
    const output = document.querySelector(`output[for="${CSS.escape(event.target.id)}"]`);
    if (output) output.textContent = event.target.value;
    const form = event.target.form;
    if (!form?.matches("form.live")) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh(form), event.target.type === "text" ? 300 : 120);
  });

  // a run in the background: looked at every second until it has ended
  const follow = async () => {
    const region = document.querySelector("[data-running]");
    if (!region) return;
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // what has ended may show more than it did: other columns, other filters
    if (!page.querySelector("[data-running]")) return location.reload();
    exchange(page);
    setTimeout(follow, 1000);
  };
  setTimeout(follow, 1000);

  document.documentElement.classList.add("scripted");
})();
