/**
 * Does some work, and looks at it from outside: how long it takes, and how it ends. Gives what the work gives, and
 * throws what it throws.
 */
export type Wrapper<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

/** One look at the work around another one. */
export function composeWrappers<About, Result>(
  outer: Wrapper<About, Result>,
  inner: Wrapper<About, Result>,
): Wrapper<About, Result> {
  return (about, work) => outer(about, () => inner(about, work));
}
