import { expect, test } from "vitest";
import type { ToolServices } from "../../src/tools/define-tool.ts";
import { type Decision, type Refused, refusal } from "../../src/tools/write/decide.ts";

// Checks each obstacle to a decision alone and together with each other one. If there is an obstacle, `decide` must
// start nothing.

type Services = Parameters<typeof refusal>[3];
type Channel = Decision["channel"];

interface Case {
  readonly run: Parameters<typeof refusal>[0];
  readonly elsewhere: "client" | "token" | undefined;
  readonly decision: Pick<Decision, "answer" | "channel" | "person">;
  readonly services: Services;
}

const CHANNELS = ["client", "view", "page", "token", "terminal"] as const satisfies readonly Channel[];

function allowed(channel: Channel): Case {
  return {
    run: { caller: "token:ann", project: "shop", environment: "live" },
    elsewhere: undefined,
    decision: { answer: "approved", channel, person: { who: "ann", caller: "token:ann" } },
    services: {
      ...{ readOnly: false, confirm: "ask", trustViews: false, environment: "live" },
      project: { id: "shop", name: "Shop" },
    },
  };
}

function withServices(one: Case, more: Partial<Services>): Case {
  return { ...one, services: { ...one.services, ...more } };
}

const page = (needsOther: boolean): NonNullable<ToolServices["page"]> => ({
  ...{ isOffered: () => true, show: async () => true, needsOther: () => needsOther },
});

/** The obstacles: for which channels and answers they count, and the reason that is given. */
const OBSTACLES: readonly {
  readonly why: Refused;
  readonly channels: readonly Channel[];
  readonly isForDeclining: boolean;
  readonly put: (one: Case) => Case;
}[] = [
  {
    ...{ why: "NOT_THEIRS", channels: CHANNELS, isForDeclining: true },
    put: (one) => ({
      ...one,
      decision: { ...one.decision, person: { ...one.decision.person, caller: "token:eve", approves: () => false } },
    }),
  },
  { why: "READ_ONLY", channels: CHANNELS, isForDeclining: true, put: (one) => withServices(one, { readOnly: true }) },
  {
    ...{ why: "VIEWS_NOT_TRUSTED", channels: ["view"], isForDeclining: true },
    put: (one) => withServices(one, { confirm: "strict" }),
  },
  {
    ...{ why: "NO_TOKENS", channels: ["token"], isForDeclining: false },
    put: (one) => withServices(one, { confirm: "strict" }),
  },
  {
    ...{ why: "NOT_HERE", channels: CHANNELS, isForDeclining: false },
    put: (one) => withServices(one, { project: { id: "other", name: "Other" } }),
  },
  {
    ...{ why: "NOT_HERE", channels: CHANNELS, isForDeclining: false },
    put: (one) => withServices(one, { environment: "sandbox" }),
  },
  {
    ...{ why: "OWN_REQUEST", channels: CHANNELS.filter((channel) => channel !== "page"), isForDeclining: false },
    put: (one) => withServices(one, { page: page(true) }),
  },
  {
    ...{ why: "OWN_REQUEST", channels: CHANNELS, isForDeclining: false },
    put: (one) => ({
      ...one,
      decision: { ...one.decision, person: { ...one.decision.person, except: "token:ann" } },
    }),
  },
  {
    ...{ why: "ELSEWHERE", channels: ["page", "view"], isForDeclining: false },
    put: (one) => ({ ...one, elsewhere: "client" }),
  },
];

function refused({ run, elsewhere, decision, services }: Case): Refused | undefined {
  return refusal(run, elsewhere, decision, services);
}

function answering(one: Case, answer: Decision["answer"]): Case {
  return { ...one, decision: { ...one.decision, answer } };
}

test.each(CHANNELS)("%s: who asked for a run, and who approves for its project, may decide", (channel) => {
  for (const answer of ["approved", "declined"] as const) {
    const own = answering(allowed(channel), answer);
    expect(refused(own)).toBeUndefined();
    const approver = { who: "bob", caller: "token:bob", approves: () => true, except: "token:bob" };
    expect(refused({ ...own, decision: { ...own.decision, person: approver } })).toBeUndefined();
    expect(refused(withServices(own, { page: page(false), confirm: "off" }))).toBeUndefined();
  }
});

test.each(CHANNELS)("%s: each obstacle refuses, and so does each pair of them", (channel) => {
  for (const answer of ["approved", "declined"] as const) {
    const met = OBSTACLES.filter(
      ({ channels, isForDeclining }) => channels.includes(channel) && (answer === "approved" || isForDeclining),
    );
    for (const one of OBSTACLES) {
      const alone = refused(one.put(answering(allowed(channel), answer)));
      expect({ answer, why: one.why, alone }).toEqual({
        ...{ answer, why: one.why, alone: met.includes(one) ? one.why : onlyStrict(one, channel, answer) },
      });
      for (const other of OBSTACLES) {
        const both = refused(other.put(one.put(answering(allowed(channel), answer))));
        if (met.includes(one) || met.includes(other)) expect(both).toBeDefined();
      }
    }
  }
});

/** `strict` refuses views and tokens with different reasons. Returns the reason for this channel. */
function onlyStrict({ why }: { readonly why: Refused }, channel: Channel, answer: string): Refused | undefined {
  if (why === "NO_TOKENS" && channel === "view") return "VIEWS_NOT_TRUSTED";
  return why === "VIEWS_NOT_TRUSTED" && channel === "token" && answer === "approved" ? "NO_TOKENS" : undefined;
}

test("views are trusted under strict where the settings say so", () => {
  expect(refused(withServices(allowed("view"), { confirm: "strict", trustViews: true }))).toBeUndefined();
});

test("an owner in another project of keys is the same person", () => {
  const one = allowed("page");
  const person = { ...one.decision.person, caller: "", approves: () => true, except: "token:ann" };
  const run = { ...one.run, caller: "keys:abc token:ann" };
  expect(refused({ ...one, run, decision: { ...one.decision, person } })).toBe("OWN_REQUEST");
});
