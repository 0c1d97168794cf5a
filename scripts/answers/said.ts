import { tableOf } from "../packaging/markdown.ts";
import type { TypicalCall } from "./calls.ts";
import type { Snapshot } from "./page.ts";

/** What the README tells people to say, and the call that an agent makes for it, with the sample data. */
export const SAID: readonly TypicalCall[] = [
  { wish: "Which targetings do I have?", tool: "get_targeting", given: () => ({}) },
  {
    wish: "Show me everything in Shop Categories.",
    tool: "list_options",
    given: () => ({ targetingName: "Shop Categories", all: true }),
  },
  {
    wish: "Which options of Shop Campaigns are empty?",
    tool: "list_options",
    given: () => ({ targetingName: "Shop Campaigns", empty: true }),
  },
  {
    wish: "Add Scarves (category-scarves) and Hats (category-hats) to Shop Categories.",
    tool: "bulk_add_options",
    given: () => ({
      targetingName: "Shop Categories",
      items: [
        { name: "Scarves", contexts: ["category-scarves"] },
        { name: "Hats", contexts: ["category-hats"] },
      ],
    }),
  },
  {
    wish: "Put Scarves into the group Clothing.",
    tool: "update_options",
    given: () => ({
      targetingName: "Shop Categories",
      items: [{ currentName: "Scarves", parentName: "Clothing" }],
    }),
  },
  {
    wish: "Delete Clearance 2023 from Shop Campaigns.",
    tool: "delete_options",
    given: () => ({ targetingName: "Shop Campaigns", names: ["Clearance 2023"] }),
  },
  {
    wish: "Send a sign-up of user u-1.",
    tool: "track_event",
    given: () => ({ uid: "u-1", eventName: "sign_up" }),
  },
  {
    wish: "Which events of the Android app were thrown away?",
    tool: "inspect_events",
    given: () => ({ platform: "android", verdict: "ignored" }),
  },
];

const LINES = 3;
const LONGEST = 150;
const PLACE = /<!-- said -->\n[\s\S]*?<!-- \/said -->/;

/** A page with the requests and what came back in the place for them. Throws a RangeError where it has none. */
export function withSaid(page: string, snapshots: readonly Snapshot[]): string {
  if (!PLACE.test(page)) throw new RangeError("the page has no place for what to say");
  const rows = snapshots.map(({ wish, tool, text }) => [`"${wish}"`, `\`${tool}\``, shortened(text)]);
  const table = tableOf(["say", "the agent calls", "what comes back"], rows);
  return page.replace(PLACE, () => `<!-- said -->\n${table}\n<!-- /said -->`);
}

/** The first lines of an answer, as code, without the marks around data. */
function shortened(text: string): string {
  const lines = text.split("\n").filter((line) => !/^<\/?data>$/.test(line));
  const shown = lines
    .slice(0, LINES)
    .map((line) => `\`${line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line}\``);
  return [...shown, ...(lines.length > LINES ? ["…"] : [])].join("<br>");
}
