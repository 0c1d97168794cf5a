import { type Finding, finding } from "./rules.ts";

const THREE_LETTERS = /^[A-Za-z]{3}$/;
const EMAIL = /[^\s@]+@[^\s@]+\.[^\s@]+/;
const INTERNATIONAL_PHONE = /^(?:\+|00)[\d\s().-]+$/;
const NATIONAL_PHONE = /^\(?0[1-9][\d\s().-]+$/;
const GROUPED_PHONE = /^(?:1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}$/;
const PHONE_DIGITS = { fewest: 9, most: 15 };
/** Longer texts are neither addresses nor numbers, and are not searched. */
const LONGEST_ADDRESS = 320;

/** Warns of a `uid` that looks like an e-mail address or a phone number (event-tracking-api 1). */
export function personalDataWarning(uid: string): Finding | undefined {
  const kind = personalDataIn(uid.trim());
  if (kind === undefined) return undefined;
  return finding(
    "personalData",
    "uid",
    `"uid" looks like ${kind}: the service hashes it with SHA-256 before storing it, but it travels in clear to the service`,
    "send an identifier of your own that tells nothing about the person",
  );
}

function personalDataIn(uid: string): string | undefined {
  if (uid.length > LONGEST_ADDRESS) return undefined;
  if (uid.includes("@") && EMAIL.test(uid)) return "an e-mail address";
  const digits = uid.replace(/\D/g, "").length;
  if (digits < PHONE_DIGITS.fewest || digits > PHONE_DIGITS.most) return undefined;
  const isPhone = INTERNATIONAL_PHONE.test(uid) || NATIONAL_PHONE.test(uid) || GROUPED_PHONE.test(uid);
  return isPhone ? "a phone number" : undefined;
}

/** Warns of a `currency` that is no three-letter code, which is what the document's samples use (2.3). */
export function currencyWarning(currency: unknown): Finding | undefined {
  if (typeof currency !== "string" || THREE_LETTERS.test(currency)) return undefined;
  return finding(
    "currencyFormat",
    "currency",
    '"currency" is no three-letter code',
    "send an ISO 4217 code such as KRW or USD",
  );
}

/** Warns of a `value` that is not `price` × `quantity`, where all three are there. */
export function valueWarning(value: unknown, price: unknown, quantity: unknown): Finding | undefined {
  if (typeof value !== "number" || typeof price !== "number" || typeof quantity !== "number") return undefined;
  const product = price * quantity;
  // The price of each piece and the value itself may each be rounded to a hundredth.
  const tolerance = 0.005 * (Math.abs(quantity) + 1) + Math.abs(product) * 1e-9;
  if (Math.abs(value - product) <= tolerance) return undefined;
  return finding(
    "valueMismatch",
    "value",
    `"value" is ${value}, but "price" × "quantity" is ${product}`,
    `send ${product}, or leave "value" out`,
  );
}
