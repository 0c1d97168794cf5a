import type { WriteCall } from "../../src/changes/call.ts";
import { isContextId, isName } from "./model/facts.ts";
import type { Project } from "./model/project.ts";
import type { AddedOption } from "./model/requests.ts";
import type { OtherWrite } from "./others.ts";
import type { Random } from "./random.ts";
import { allOptions, contextTargetings, OPTION_NAMES, someContexts, TARGETING_NAMES } from "./world.ts";

/** Makes a random write of another user that uses the same names and objects as a call. */
export function randomWrite(random: Random, project: Project, call: WriteCall): OtherWrite {
  const { input } = call;
  const anyTargeting = random.pick(contextTargetings(project)).id;
  const targeting = "targetingId" in input && random.chance(0.8) ? (input.targetingId ?? anyTargeting) : anyTargeting;
  const options = allOptions(project);
  const option = options.length === 0 ? targeting : random.pick(options).id;
  const groups = project.groups();
  const group = groups.length === 0 ? option : random.pick(groups).id;
  const names = namesIn(call);
  const name = random.pick(names.length > 0 && random.chance(0.8) ? names : OPTION_NAMES);
  const targetingName = random.pick(names.length > 0 && random.chance(0.8) ? names : TARGETING_NAMES);
  const contexts = someContexts(random, 3);
  const api = (request: Extract<OtherWrite, { readonly by: "api" }>["request"]) => ({ by: "api" as const, request });
  return random.pick<() => OtherWrite>([
    () => api({ operation: "addOptions", items: [{ targeting, name }] }),
    () => api({ operation: "addOptions", items: [{ targeting, name, contexts }] }),
    () => api({ operation: "addOptions", items: [{ targeting, name, type: "collection", contexts }] }),
    () => api({ operation: "addOptions", items: [{ targeting, name, parent: group }] }),
    () => api({ operation: "addOptions", items: lookalikes(random, call, targeting) }),
    () => api({ operation: "addOptions", items: lookalikes(random, call, targeting) }),
    () => api({ operation: "createTargetings", items: [{ name: targetingName }] }),
    () => api({ operation: "createTargetings", items: [{ name: targetingName, options: [{ name }] }] }),
    () => api({ operation: "renameTargetings", items: [{ _id: targeting, name: targetingName }] }),
    () => api({ operation: "deleteTargetings", items: [targeting] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, name }] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, contexts: { add: contexts } }] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, contexts: { remove: contexts } }] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, contexts: { set: contexts } }] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, parent: null }] }),
    () => api({ operation: "updateOptions", items: [{ _id: option, parent: group }] }),
    () => api({ operation: "deleteOptions", items: [option] }),
    () => ({ by: "console", what: "createOption", targeting, name }),
    () => ({ by: "console", what: "renameOption", id: option, name }),
    () => ({ by: "console", what: "renameNewest", from: name, name: `${name} 2` }),
    () => ({ by: "console", what: "changeContexts", id: option, add: contexts, remove: someContexts(random, 3) }),
    () => ({ by: "console", what: "deleteOption", id: option }),
    () => ({ by: "console", what: "createTargeting", name: targetingName }),
    () => ({ by: "console", what: "renameTargeting", id: targeting, name: targetingName }),
  ])();
}

/** Returns items of the call, unchanged or with other Context IDs, like a user who adds nearly the same file. */
function lookalikes(random: Random, call: WriteCall, targeting: string): readonly AddedOption[] {
  if (call.tool !== "bulk_add_options") return [];
  const good = call.input.items.filter(({ name, contexts = [] }) => isName(name) && contexts.every(isContextId));
  return random.some(good, random.between(1, 3)).map(({ name, type, contexts = [], parent, children }) => ({
    ...{ targeting, name },
    ...(type === undefined ? {} : { type }),
    ...(parent === undefined ? {} : { parent }),
    contexts: random.chance(0.5) ? [...contexts] : contexts.map((_, number) => `c${number}`),
    ...(children === undefined ? {} : { children: children.map((child) => ({ name: child.name })) }),
  }));
}

function namesIn({ input }: WriteCall): readonly string[] {
  const items = "items" in input ? input.items : [];
  return items.flatMap((item) => ("name" in item && item.name !== undefined && item.name.length > 2 ? item.name : []));
}
