/** Adds a value to the list of a key, and creates the list if it is missing. */
export function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** Groups values by a common key, in their order. */
export function groupedBy<Value, Key>(
  values: Iterable<Value>,
  keyOf: (value: Value) => Key,
): ReadonlyMap<Key, readonly Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) addTo(groups, keyOf(value), value);
  return groups;
}
