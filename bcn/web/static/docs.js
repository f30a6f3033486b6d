// The documentation of the JSON interface: every operation of openapi.json, with its parameters, body and responses.

import { byId, element } from "./dom.js";

const operations = byId("operations");
const response = await fetch("openapi.json");
const { paths, components: { schemas } } = await response.json();

// The schema itself where a reference stands for it.
const resolve = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema ?? {});

// What a value is, in a few words.
function typeOf(schema) {
  const { anyOf, allOf, enum: values, const: constant, type, items, prefixItems } = schema;
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (anyOf ?? allOf) return (anyOf ?? allOf).map(typeOf).join(" or ");
  if (values) return values.map((each) => JSON.stringify(each)).join(" or ");
  if (constant !== undefined) return JSON.stringify(constant);
  if (prefixItems) return `[${prefixItems.map(typeOf).join(", ")}]`;
  if (type === "array") return `list of ${typeOf(items ?? {})}`;
  const bounds = [["minimum", "from"], ["maximum", "to"], ["exclusiveMaximum", "below"], ["maxLength", "of length up to"]];
  return [type ?? "any value", ...bounds.filter(([key]) => key in schema).map(([key, word]) => `${word} ${schema[key]}`)].join(" ");
}

const row = (cells) => element("tr", {}, ...cells.map((each) => element("td", {}, each)));
function table(rows) {
  const name = (text, required) => element("code", {}, required ? text : `${text}?`);
  return element("table", { class: "fields" }, element("tbody", {}, ...rows.map(([field, schema, required]) => {
    const example = schema.examples ? ` Example: ${JSON.stringify(schema.examples[0])}` : "";
    return row([name(field, required), typeOf(schema), `${schema.description ?? ""}${example}`]);
  })));
}
const fields = ({ properties = {}, required = [] }) =>
  table(Object.entries(properties).map(([name, schema]) => [name, schema, required.includes(name)]));

// A schema, and those that its fields refer to.
function referred(schema, found = new Map()) {
  const { $ref } = schema;
  const name = $ref?.split("/").at(-1);
  if (name && !found.has(name)) {
    found.set(name, schemas[name]);
    referred(schemas[name], found);
  }
  for (const part of Object.values($ref ? {} : schema)) if (part && typeof part === "object") referred(part, found);
  return found;
}
const describeAll = (schema) => [...referred(schema)].flatMap(([name, each]) => [element("h3", {}, name), fields(each)]);

function describe(path, method, operation) {
  const parts = [element("h2", {}, element("code", {}, `${method.toUpperCase()} ${path}`)), element("p", {}, operation.description ?? "")];
  if (operation.parameters) {
    const rows = operation.parameters.map(({ name, schema, description, required, examples }) =>
      [name, { description, ...(examples ? { examples } : {}), ...schema }, required]);
    parts.push(element("h3", {}, "Query"), table(rows));
  }
  for (const [type, { schema }] of Object.entries(operation.requestBody?.content ?? {}))
    parts.push(element("h3", {}, `Body: ${type}`), element("p", {}, resolve(schema).description ?? ""), ...describeAll(schema));
  const { 200: answer, ...errors } = operation.responses;
  parts.push(element("h3", {}, "Response"), ...describeAll(answer.content["application/json"].schema));
  parts.push(element("table", { class: "fields" }, element("tbody", {}, ...Object.entries(errors).map(([status, { description }]) =>
    row([element("code", {}, status), description])))));
  return element("section", { class: "card operation", "data-path": path }, ...parts);
}

operations.replaceChildren(...Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => describe(path, method, operation))));
operations.setAttribute("aria-busy", "false");
