/**
 * Does some work, and looks at it from outside: how long it takes, and how it ends. Gives what the work gives, and
 * throws what it throws.
 */
export type Around<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

/** One look at the work around another one. */
export function nested<About, Result>(
  outer: Around<About, Result>,
  inner: Around<About, Result>,
): Around<About, Result> {
  return (about, work) => outer(about, () => inner(about, work));
}
