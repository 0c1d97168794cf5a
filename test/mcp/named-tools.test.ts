import { expect, test } from "vitest";
import { instructions } from "../../src/mcp/server.ts";
import { allTools, hiddenTools, listedTools } from "../../src/mcp/server-parts.ts";

const EITHER = [false, true];
const SETS = [["targeting"], ["events"], ["targeting", "events"]] as const;

test("instructions, descriptions and schemas name only tools that are listed, whatever the settings", async () => {
  const tools = await allTools();
  const names = tools.map(({ tool }) => tool.name);
  const offers = SETS.flatMap((toolsets) =>
    [...SETS, []].flatMap((configured) =>
      EITHER.flatMap((readOnly) => EITHER.map((hasSandbox) => ({ toolsets, configured, readOnly, hasSandbox }))),
    ),
  );
  expect(offers).toHaveLength(48);
  const wrong = offers.flatMap((offer) => {
    const listed = listedTools(tools, offer);
    const shown = new Set(listed.map(({ tool }) => tool.name));
    const hidden = hiddenTools(tools, offer);
    const texts = [
      ...(["live", "sandbox"] as const).map((environment) => instructions({ environment, tools: listed, hidden })),
      ...listed.flatMap(({ tool, inputSchema, outputSchema }) => [
        tool.description,
        JSON.stringify([inputSchema(), outputSchema()]),
      ]),
    ];
    const named = names.filter((name) => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)));
    const absent = named.filter((name) => !shown.has(name));
    return absent.length === 0 ? [] : [{ ...offer, absent }];
  });
  expect(wrong).toEqual([]);
});

test("a description without a hidden tool stays a whole text", async () => {
  const tools = await allTools();
  const offer = { toolsets: ["targeting"], configured: ["targeting"], readOnly: true, hasSandbox: false } as const;
  for (const { tool } of listedTools(tools, offer)) expect(tool.description).toMatch(/^[A-Z][^;]*.*[^.;]\.$/s);
  const plan = listedTools(tools, offer).find(({ tool }) => tool.name === "plan_targeting");
  expect(plan?.tool.description).toContain(
    "conflicts and drift. Sends nothing. Options given without contexts keep their Context IDs",
  );
});
