import { ITEM_FIELDS, type Parameter } from "../../spec/events.ts";

/** A source of numbers in [0, 1): the same for the same seed. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORDS = ["머그컵", "mug", "티셔츠", "shirt", "신발", "shoes"];
const CURRENCIES = ["KRW", "USD", "EUR", "JPY"];

/**
 * A sample value for a parameter, in a form that reads like what an application sends. A parameter has the same value
 * wherever it appears in a suite, so that a cart and a purchase speak of the same item.
 */
function sampleValue(name: string, { type }: Parameter, seed: number): unknown {
  if (type === "items") return [sampleParameters(ITEM_FIELDS, seed), sampleParameters(ITEM_FIELDS, seed + 1)];
  const random = seededRandom(seedOf(name, seed));
  if (type === "number") return Math.floor(random() * 5) + 1;
  if (name === "currency") return pick(CURRENCIES, random);
  const code = Math.floor(random() * 36 ** 5).toString(36);
  if (name.endsWith("_url")) return `https://example.com/${code}`;
  return name.endsWith("_id") ? `${name}-${code}` : `${pick(WORDS, random)} ${code}`;
}

/** A value for each of the parameters; `value` is `price` × `quantity`. */
export function sampleParameters(
  parameters: Readonly<Record<string, Parameter>>,
  seed: number,
): Record<string, unknown> {
  const sample: Record<string, unknown> = {};
  for (const [name, parameter] of Object.entries(parameters)) sample[name] = sampleValue(name, parameter, seed);
  const { price, quantity, value } = sample;
  if (value !== undefined && typeof price === "number" && typeof quantity === "number") sample.value = price * quantity;
  return sample;
}

function seedOf(name: string, seed: number): number {
  let mixed = seed;
  for (const letter of name) mixed = Math.imul(mixed, 31) + (letter.codePointAt(0) ?? 0);
  return mixed;
}

function pick(choices: readonly string[], random: () => number): string {
  return choices[Math.floor(random() * choices.length)] ?? "";
}
