// The options of requests that are answered in pages, as tables: what each of them is on a first page, and on a page that
// a cursor continues.

import type { Limits } from '../../common/limits.js';
import { requireRepeated } from '../api/repeated.js';

interface Option<Request, Value> {
  /** Whether a cursor keeps it. */
  readonly isSealed: boolean;
  first(request: Request, limits: Limits): Value;
  /** Throws `cursor_mismatch` for a request that may not change it. */
  next(request: Request, sealed: Value): Value;
}

export type OptionTable<Request, Options> = {
  readonly [Name in keyof Options]: Option<Request, Options[Name]>;
};

export function firstOptions<Request, Options>(
  table: OptionTable<Request, Options>,
  request: Request,
  limits: Limits,
): Options {
  return mapTable(table, (_name, option) => option.first(request, limits));
}

/** Throws `cursor_mismatch`. */
export function nextOptions<Request, Options>(
  table: OptionTable<Request, Options>,
  request: Request,
  sealed: Partial<Options>,
): Options {
  return mapTable(table, (name, option) => option.next(request, sealed[name]));
}

/** Those that a cursor keeps. */
export function sealOptions<Request, Options>(
  table: OptionTable<Request, Options>,
  options: Options,
): Partial<Options> {
  const names = (Object.keys(table) as (keyof Options)[]).filter((name) => table[name].isSealed);
  return Object.fromEntries(names.map((name) => [name, options[name]])) as Partial<Options>;
}

function mapTable<Request, Options>(
  table: OptionTable<Request, Options>,
  map: (name: keyof Options, option: Option<Request, unknown>) => unknown,
): Options {
  const options = Object.entries(table) as [keyof Options, Option<Request, unknown>][];
  return Object.fromEntries(options.map(([name, option]) => [name, map(name, option)])) as Options;
}

/** The kinds of options of these requests. */
export function optionKinds<Request extends object>() {
  return {
    /** One of the first page: with a cursor, its members may only be repeated. */
    fixed<Value>(
      first: (request: Request, limits: Limits) => Value,
      repeats: {
        readonly [Member in keyof Request]?: (
          sent: NonNullable<Request[Member]>,
          sealed: Value,
        ) => boolean;
      },
    ): Option<Request, Value> {
      return {
        isSealed: true,
        first,
        next(request, sealed) {
          requireRepeated(request, repeats, sealed);
          return sealed;
        },
      };
    },

    /** One that each page may change, and else has from the page before. */
    changeable<Value>(
      name: keyof Request,
      unset: (request: Request, limits: Limits) => Value,
    ): Option<Request, Value> {
      const sent = (request: Request) => request[name] as Value | undefined;
      return {
        isSealed: true,
        first: (request, limits) => sent(request) ?? unset(request, limits),
        next: (request, sealed) => sent(request) ?? sealed,
      };
    },

    ofEachPage<Value>(read: (request: Request) => Value): Option<Request, Value> {
      return { isSealed: false, first: read, next: read };
    },

    ofFirstPage<Value>(read: (request: Request) => Value | null): Option<Request, Value | null> {
      return { isSealed: false, first: read, next: () => null };
    },
  };
}
