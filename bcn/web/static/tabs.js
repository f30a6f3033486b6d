// Tabs: by pointer, by arrow keys, Home and End, and by the address: #find shows Find, #reason?scene=... Reason.

export const panelInAddress = () => location.hash.slice(1).split("?")[0];
export const valueInAddress = (key) => new URLSearchParams(location.hash.split("?")[1] ?? "").get(key);

export function startTabs(onSelect = () => {}) {
  const all = [...document.querySelectorAll("[role=tab]")];
  const panelOf = (tab) => tab.getAttribute("aria-controls");
  function select(tab) {
    for (const each of all) {
      each.setAttribute("aria-selected", each === tab);
      each.tabIndex = each === tab ? 0 : -1;
      document.getElementById(panelOf(each)).hidden = each !== tab;
    }
    if (panelInAddress() !== panelOf(tab)) history.pushState(null, "", `#${panelOf(tab)}`);
    onSelect(panelOf(tab));
  }
  all.forEach((tab, index) => {
    tab.onclick = () => select(tab);
    tab.onkeydown = (event) => {
      const next = { ArrowRight: index + 1, ArrowLeft: index - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      all[next % all.length].focus();
      select(all[next % all.length]);
    };
  });
  const follow = () => { const tab = all.find((each) => panelOf(each) === panelInAddress()); if (tab) select(tab); };
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  follow();
}
