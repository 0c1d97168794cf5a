/** The part of a shared resource that one request holds. */
export interface Claim {
  /** Takes more. False, and takes nothing, where this caller or all callers would exceed the limit, or after `end`. */
  more(amount: number): boolean;
  /** Gives everything back, and takes no more. */
  end(): void;
}

/** A resource that callers share, of which one caller gets at most half. */
export interface Shares {
  /** The most that one caller gets. */
  readonly forOne: number;
  claim(caller: string): Claim;
}

/** Shares `forAll` among all callers, of which each gets at most half (at least 1). */
export function shares(forAll: number): Shares {
  const forOne = Math.max(1, Math.floor(forAll / 2));
  const taken = new Map<string, number>();
  let all = 0;
  return {
    forOne,
    claim(caller) {
      let mine = 0;
      let isOver = false;
      const take = (amount: number): void => {
        all += amount;
        mine += amount;
        const left = (taken.get(caller) ?? 0) + amount;
        if (left === 0) taken.delete(caller);
        else taken.set(caller, left);
      };
      return {
        more(amount) {
          if (isOver || all + amount > forAll || (taken.get(caller) ?? 0) + amount > forOne) return false;
          take(amount);
          return true;
        },
        end() {
          isOver = true;
          take(-mine);
        },
      };
    },
  };
}
