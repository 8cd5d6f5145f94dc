// A value outside React that components subscribe to.

import { useCallback, useSyncExternalStore } from 'react';

export interface ValueStore<Value> {
  get(): Value;
  set(value: Value): void;
  /** Returns a function that ends the subscription. */
  subscribe(listener: () => void): () => void;
}

export function createStore<Value>(initial: Value): ValueStore<Value> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<Value>(store: ValueStore<Value>): Value {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** The value, and a function that changes some of its members. */
export function useMembers<Value extends object>(
  store: ValueStore<Value>,
): [Value, (part: Partial<Value>) => void] {
  const value = useStore(store);
  const change = useCallback(
    (part: Partial<Value>) => store.set({ ...store.get(), ...part }),
    [store],
  );
  return [value, change];
}

/**
 * A store for each key, created on first use. Keeps the input and results of a collection while another
 * tab is shown.
 */
export function createStores<Value>(initial: Value): (key: string) => ValueStore<Value> {
  const stores = new Map<string, ValueStore<Value>>();
  return (key) => {
    const store = stores.get(key) ?? createStore(initial);
    stores.set(key, store);
    return store;
  };
}
