// Elements of the page. Names and answers come from weights files, so all text is set as text and never read as HTML.

export const byId = (id) => document.getElementById(id);

// An element with these attributes around other elements and text.
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// The same for a part of a drawing.
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

// Does something again only where its words have changed: what is written makes the browser lay out the page.
export function whenChanged(write) {
  let before = null;
  return (...values) => {
    const now = JSON.stringify(values);
    if (now === before) return;
    before = now;
    write(...values);
  };
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
