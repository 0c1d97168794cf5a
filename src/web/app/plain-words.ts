// Formats numbers, times and texts for people.

export const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
/** Formats a date as `2026-05-10`. The Swedish format is that of ISO 8601. */
const DATE = new Intl.DateTimeFormat("sv");
const TO_THE_MINUTE = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const TO_THE_MILLISECOND = { ...TO_THE_MINUTE, second: "2-digit", fractionalSecondDigits: 3 } as const;
const CLOCKS = {
  minute: new Intl.DateTimeFormat("en", TO_THE_MINUTE),
  second: new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" }),
  millisecond: new Intl.DateTimeFormat("en", TO_THE_MILLISECOND),
} as const;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Returns a time relative to another one: `2 min ago`, `in 3 h`. More than 24 hours away, it is a date. */
export function agoWords(at: number, from: number): string {
  const ms = from - at;
  const size = Math.abs(ms);
  // The clock of the page ticks every 5 seconds, so a new event may seem to be up to 5 seconds in the future.
  if (size <= 5000) return "just now";
  if (size < MINUTE) return ms > 0 ? `${Math.round(size / 1000)} s ago` : "in a moment";
  // A time in the future is rounded: if it were rounded down, `in 24 h` would become `in 23 h` after one second.
  const whole = ms > 0 ? Math.floor : Math.round;
  const about = size < HOUR ? `${whole(size / MINUTE)} min` : size <= 24 * HOUR ? `${whole(size / HOUR)} h` : undefined;
  if (about !== undefined) return ms > 0 ? `${about} ago` : `in ${about}`;
  const date = new Date(at);
  return date.getFullYear() === new Date(from).getFullYear()
    ? `${DAY.format(date)}, ${CLOCKS.minute.format(date)}`
    : YEAR.format(date);
}

/** Returns a time of day, with the date if `from` is on another day. */
export function clockWords(at: number, to: keyof typeof CLOCKS, from: number): string {
  const isSameDay = new Date(at).toDateString() === new Date(from).toDateString();
  return `${isSameDay ? "" : `${DAY.format(at)}, `}${CLOCKS[to].format(at)}`;
}

/** Returns the date of a time in the person's time zone, as in the page's addresses: `2026-05-10`. Empty for NaN. */
export function dateOf(at: number): string {
  return Number.isNaN(at) ? "" : DATE.format(at);
}

/** Returns a day as `Today`, `Yesterday`, or its date. */
export function dayWords(at: number, from: number): string {
  const midnight = (time: number): number => new Date(time).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(from) - midnight(at)) / (24 * HOUR));
  return days === 0 ? "Today" : days === 1 ? "Yesterday" : YEAR.format(new Date(at));
}

/** Returns a duration as text: `< 0.1 s`, `0.4 s`, `3 min 20 s`. */
export function durationWords(ms: number): string {
  if (ms < 100) return "< 0.1 s";
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

const NUMBERS = new Intl.NumberFormat("en");

export function number(value: number): string {
  return NUMBERS.format(value);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Describes a number of options and groups together. The service does not count those of a targeting separately. */
export function wholeWords(count: number): string {
  return counted(count, "option or group", "options and groups");
}

/** Returns a share in percent. Rounding never results in 0 % or 100 % unless the share is exactly that. */
export function percent(count: number, whole: number): string {
  const share = (100 * count) / Math.max(1, whole);
  if (share > 0 && share < 1) return "less than 1 %";
  return `${share < 100 ? Math.min(99, Math.round(share)) : 100} %`;
}

/** Compares two texts word by word. Returns `text` in parts: the common beginning, the middle, and the common end. */
export function diffWords(text: string, other: string) {
  const [words, others] = [text.split(/(?<= )/), other.split(/(?<= )/)];
  let first = 0;
  while (first < words.length && first < others.length && words[first]?.trimEnd() === others[first]?.trimEnd())
    first += 1;
  let last = 0;
  const most = Math.min(words.length, others.length) - first;
  while (last < most && words.at(-1 - last)?.trimEnd() === others.at(-1 - last)?.trimEnd()) last += 1;
  return {
    before: words.slice(0, first).join(""),
    middle: words.slice(first, words.length - last).join(""),
    after: words.slice(words.length - last).join(""),
  };
}
