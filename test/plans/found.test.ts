import { expect, test } from "vitest";
import type { Fault } from "../faults/model/faults.ts";
import type { Thing } from "./meaning.ts";
import { byNames, CALM, modelled, put, type Trouble } from "./modelled.ts";
import { desiredOf } from "./plan-properties.ts";
import { appliedTo, checkUndone, sharedServices } from "./undone-properties.ts";

// Cases that random plans and undos found, made as small as possible.

function thing(id: string, fields: Partial<Thing> = {}): Thing {
  return { id, name: `Option ${id}`, parent: null, isGroup: false, expose: false, contexts: new Set(), ...fields };
}

/**
 * Applies options of a file to a targeting, and checks that this can be undone and redone. Returns what was applied.
 */
async function applied(
  things: readonly Thing[],
  options: (idOf: (name: string) => string) => object,
  trouble: Trouble = CALM,
): Promise<string> {
  const scene = modelled(1, sharedServices());
  const targetingId = put(new Map(things.map((one) => [one.id, one])), "Spring", scene);
  const { project } = scene;
  const idOf = (name: string): string => project.optionsNamed(targetingId, name)[0]?.id ?? "";
  const state = { version: 1, targeting: { _id: targetingId }, options: options(idOf) };
  const before = byNames(project);
  const { run } = await appliedTo(targetingId, await desiredOf(JSON.stringify(state)), scene);
  const after = byNames(project);
  await checkUndone(run, { before, after }, scene, () => trouble);
  expect(scene.improper).toEqual([]);
  return `${run.status()}\n${after.join("\n")}`;
}

test("names that two exchange, one of which goes into the other, which loses its last Context ID", async () => {
  const things = [thing("A", { isGroup: true, contexts: new Set(["own"]) }), thing("B", { contexts: new Set(["b"]) })];
  const told = await applied(things, (idOf) => [
    {
      _id: idOf("Option A"),
      name: "Option B",
      contexts: [],
      children: [{ _id: idOf("Option B"), name: "Option A" }],
    },
  ]);
  expect(told).toBe(
    [
      "succeeded",
      '["Spring","Option A","Option B",false,false,["b"]]',
      '["Spring","Option B",null,true,false,[]]',
      '["Spring","context"]',
    ].join("\n"),
  );
});

test("a new group goes again, into which nothing but an option went that was there", async () => {
  const told = await applied([thing("A")], (idOf) => [
    { name: "Group", children: [{ _id: idOf("Option A"), name: "Option A" }] },
  ]);
  expect(told).toContain('["Spring","Option A","Group",false,false,[]]');
});

test("a new group comes back after its deletion, whose first answer was lost", async () => {
  const lost: Fault = { kind: "reset", effect: "whole" };
  const told = await applied(
    [thing("A")],
    (idOf) => [{ name: "Group", children: [{ _id: idOf("Option A"), name: "Option A" }] }],
    // The answer to every second request is lost, so each request is sent twice.
    { ...CALM, faults: new Map([0, 2, 4, 6, 8].map((on) => [on, lost])) },
  );
  expect(told).toContain('["Spring","Option A","Group",false,false,[]]');
});

test("a new group goes again whose name goes back to another option, while the only option in it leaves", async () => {
  const told = await applied([thing("A"), thing("X", { name: "Taken" })], (idOf) => [
    { _id: idOf("Taken"), name: "Given up" },
    { name: "Taken", children: [{ _id: idOf("Option A"), name: "Option A" }] },
  ]);
  expect(told).toContain('["Spring","Option A","Taken",false,false,[]]');
});

// The new sub-option must wait until its name is free. Until then, the group would be empty, which the service does not
// allow.
test.each([
  ["loses its last Context IDs", new Set(["own", "other"]), "Sub"],
  ["has none of its own", new Set<string>(), "Sub"],
])(
  "a group whose only sub-option leaves while a new one comes, which takes a name that is given up: it %s",
  async (_, contexts, name) => {
    const things = [
      thing("G", { isGroup: true, contexts }),
      thing("S", { name, parent: "G", contexts: new Set(["s"]) }),
      thing("X", { name: "Taken" }),
    ];
    const told = await applied(things, (idOf) => [
      { _id: idOf("Option G"), name: "Option G", contexts: [], children: [{ name: "Taken", contexts: ["new"] }] },
      { _id: idOf("Sub"), name: "Sub" },
      { _id: idOf("Taken"), name: "Given up" },
    ]);
    expect(told).toContain("succeeded");
    expect(told).toContain('["Spring","Taken","Option G",false,false,["new"]]');
  },
);

test("a group whose Context IDs go to another one and whose sub-option leaves, while a new one waits for its name", async () => {
  const things = [
    thing("G", { isGroup: true, contexts: new Set(["own"]) }),
    thing("H", { isGroup: true, contexts: new Set(["h"]) }),
    thing("S", { name: "Sub", parent: "G" }),
    thing("X", { name: "Taken" }),
  ];
  const told = await applied(things, (idOf) => [
    { _id: idOf("Option G"), name: "Option G", contexts: [], children: [{ name: "Taken", contexts: ["new"] }] },
    { _id: idOf("Option H"), name: "Option H", contexts: ["h", "own"], children: [] },
    { _id: idOf("Sub"), name: "Sub" },
    { _id: idOf("Taken"), name: "Given up" },
  ]);
  expect(told).toContain("succeeded");
});

test("a group gets its Context ID and its name back before its only sub-option goes, together with the option that took the name", async () => {
  const things = [thing("G", { name: "Taken", isGroup: true, contexts: new Set(["own"]) })];
  const told = await applied(things, (idOf) => [
    { _id: idOf("Taken"), name: "Given up", contexts: [], children: [{ name: "Sub", contexts: ["sub"] }] },
    { name: "Taken", contexts: ["new"] },
  ]);
  expect(told).toContain('["Spring","Sub","Given up",false,false,["sub"]]');
});

test("an option takes the name of another one in the request in which that goes into a new group", async () => {
  const things = [
    thing("G", { isGroup: true, contexts: new Set(["own", "moving"]) }),
    thing("A", { name: "Taken" }),
    thing("B"),
  ];
  const scene = modelled(1, sharedServices());
  const targetingId = put(new Map(things.map((one) => [one.id, one])), "Spring", scene);
  const idOf = (name: string): string => scene.project.optionsNamed(targetingId, name)[0]?.id ?? "";
  const options = [
    { _id: idOf("Option G"), name: "Option G", contexts: ["own"], children: [] },
    { name: "New", contexts: ["moving"], children: [{ _id: idOf("Taken"), name: "Free" }] },
    { _id: idOf("Option B"), name: "Taken" },
  ];
  const state = { version: 1, targeting: { _id: targetingId }, options };
  const { run } = await appliedTo(targetingId, await desiredOf(JSON.stringify(state)), scene);
  expect([run.status(), run.state.requests]).toMatchObject(["succeeded", { planned: 3, sent: 3, resent: 0 }]);
});
