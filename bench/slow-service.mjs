// A service with one targeting that answers every request after 30 ms. It has groups with sub-options, and plain
// options. All have Context IDs and old change times. Options can be renamed and get Context IDs. Prints its address.
// `/count` returns the number of reads, `/writes` the number of writes.
import { createServer } from "node:http";

const [GROUPS, CHILDREN, PLAIN, LATENCY_MS] = process.argv.slice(2).map(Number);
const UNCHANGED = "2025-01-01T00:00:00.000Z";

const idOf = (number) => `01JBENCHREADERS${String(number).padStart(11, "0")}`;
const targeting = idOf(0);
const contextsOf = (number) => [`context-${number}`, `context-${number}-b`, `shared-${number % 100}`];
let made = 0;
const contexts = new Map();
const option = (name, more = {}) => {
  made += 1;
  const held = contextsOf(made);
  const _id = idOf(made);
  contexts.set(_id, held);
  const record = { _id, name, type: "atomic", contextCount: held.length, createdAt: UNCHANGED, updatedAt: UNCHANGED };
  return { ...record, targeting, ...more };
};
const lists = new Map();
const records = new Map();
const top = [];
for (let at = 0; at < GROUPS; at += 1) {
  const group = option(`Group ${at}`, { type: "collection", childCount: CHILDREN });
  const children = Array.from({ length: CHILDREN }, (_, child) =>
    option(`Child ${at} ${child}`, { parent: group._id }),
  );
  group.children = children.slice(0, 50).map(({ _id }) => _id);
  lists.set(group._id, children);
  top.push(group, ...Array.from({ length: Math.floor(PLAIN / GROUPS) }, (_, one) => option(`Option ${at} ${one}`)));
}
lists.set("", top);
for (const list of lists.values()) for (const one of list) records.set(one._id, one);

/** Applies an update to an option and returns the result. */
function updated({ _id, name, contexts: { add = [], remove = [] } = {} }) {
  const record = records.get(_id);
  if (name !== undefined) record.name = name;
  contexts.set(
    _id,
    [...new Set([...contexts.get(_id), ...add])].filter((id) => !remove.includes(id)),
  );
  return Object.assign(record, { contextCount: contexts.get(_id).length, updatedAt: new Date().toISOString() });
}

async function answerToUpdates(request) {
  let body = "";
  for await (const piece of request.setEncoding("utf8")) body += piece;
  const results = JSON.parse(body).items.map((item, index) => ({ index, success: true, data: updated(item) }));
  return { results, succeeded: results.length, failed: 0 };
}

let count = 0;
let writes = 0;
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const answer = (value) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(value));
  };
  if (pathname === "/count") return answer(count);
  if (pathname === "/writes") return answer(writes);
  if (request.method !== "GET") {
    writes += 1;
    return setTimeout(async () => answer(await answerToUpdates(request)), LATENCY_MS);
  }
  count += 1;
  const offset = Number(searchParams.get("offset") ?? 0);
  const page = (list, most) => list.slice(offset, offset + Number(searchParams.get("limit") ?? most));
  const [, , first, second] = pathname.split("/");
  setTimeout(() => {
    if (second === "category") {
      const list = lists.get(searchParams.get("parent") ?? "") ?? [];
      answer({ items: page(list, 1000), total: list.length });
    } else if (first === "category") answer({ ...records.get(second), contexts: page(contexts.get(second), 10_000) });
    else answer({ _id: targeting, name: "Large", optionCount: made, createdAt: UNCHANGED, updatedAt: UNCHANGED });
  }, LATENCY_MS);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port} ${targeting}`));
