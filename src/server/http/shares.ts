/** What one request takes of something that all callers share. */
export interface Claim {
  /** Takes more; false where this caller, or all together, would have too much, and after the end: nothing is taken. */
  more(amount: number): boolean;
  /** Gives everything back, and takes no more. */
  end(): void;
}

/** Something that callers share, of which no one of them gets more than half. */
export interface Shares {
  /** The most that one caller gets. */
  readonly forOne: number;
  claim(caller: string): Claim;
}

/** So much for all callers together, and half of it (at least 1) for each. */
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
