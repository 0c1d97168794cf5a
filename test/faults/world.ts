import type { Option, Project, Targeting } from "./model/project.ts";
import type { Random } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Only few names, so that they often collide. */
export const TARGETING_NAMES = ["Spring", "Summer", "Autumn", "Winter", "Sale", "봄 신상", "News", "Sports"];
export const OPTION_NAMES = [
  ...["Red", "Green", "Blue", "Shoes", "Hats", "Bags", "Boots", "Coats", "Socks", "Rings", "Toys"],
];
export const INVALID_NAMES = ["x", " Leading", "under_score", "Trailing ", "a".repeat(37)];
/** A name for which the service refuses the whole request, without saying which item is wrong. */
export const POISON = "Poison";

/** Returns some of 24 Context IDs. There are so few that groups often collide. */
export function someContexts(random: Random, most: number): string[] {
  const stock = Array.from({ length: 24 }, (_, number) => `c${number}`);
  return random.some(stock, random.below(most + 1));
}

/** Fills a project before a run: targetings with options and groups, created at different times. */
export function fillWorld(project: Project, time: VirtualTime, random: Random): void {
  const pass = (): void => time.advance(random.pick([0, 1, 40, 900, 60_000]));
  const names = random.some(TARGETING_NAMES, random.between(1, 4));
  names.forEach((name, number) => {
    pass();
    const isAudience = number > 0 && random.chance(0.15);
    const targeting = project.createTargeting("before", {
      name,
      kind: isAudience ? "audience" : "context",
      locked: random.chance(0.1),
    });
    if (!isAudience) fillTargeting(project, targeting, random, pass);
  });
  // The two clocks are compared only to about 20 ms. An object that was created at the moment of a run's first request
  // would look like the run's own.
  time.advance(50);
  pass();
}

function fillTargeting(project: Project, targeting: Targeting, random: Random, pass: () => void): void {
  const names = random.some(OPTION_NAMES, random.below(9));
  const next = (): string | undefined => names.pop();
  for (let name = next(); name !== undefined; name = next()) {
    if (random.chance(0.3)) pass();
    const isGroup = random.chance(0.4);
    const free = (id: string): boolean => !project.groups().some((group) => group.contexts.has(id));
    const own = someContexts(random, 4);
    const contexts = isGroup ? own.filter(free) : own;
    const children = isGroup ? Array.from({ length: random.below(4) }, next).filter((each) => each !== undefined) : [];
    const locked = !isGroup && random.chance(0.1);
    const group = isGroup && children.length + contexts.length > 0;
    const made = project.createOption("before", { targeting: targeting.id, name, isGroup: group, contexts, locked });
    for (const child of group ? children : []) {
      const place = { targeting: targeting.id, parent: made.id };
      project.createOption("before", { ...place, name: child, isGroup: false, contexts: someContexts(random, 3) });
    }
  }
}

/** Context targetings of a project, in the order of their creation. */
export function contextTargetings(project: Project): readonly Targeting[] {
  return [...project.targetings.values()].filter(({ kind }) => kind === "context");
}

/** Returns the options that a call may use, in the order of their creation. */
export function allOptions(project: Project): readonly Option[] {
  return [...project.options.values()];
}
