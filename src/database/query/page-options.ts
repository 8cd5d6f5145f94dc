// Tables of the options of paged requests: how each option is read from a first page and from a cursor.

import type { Limits } from '../../common/limits.js';
import { requireRepeated } from '../api/repeated.js';

interface Option<Request, Value> {
  /** Whether cursors contain the option. */
  readonly isSealed: boolean;
  first(request: Request, limits: Limits): Value;
  /** Throws `cursor_mismatch` if the request changes an option that it may only repeat. */
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

/** The options that a cursor contains. */
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
  const options: Partial<Record<keyof Options, unknown>> = {};
  for (const name of Object.keys(table) as (keyof Options)[]) {
    options[name] = map(name, table[name] as Option<Request, unknown>);
  }
  return options as Options;
}

/** Constructors of the kinds of options. */
export function optionKinds<Request extends object>() {
  return {
    /** An option of the first page. Requests with a cursor may only repeat it. */
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

    /** An option that each page may change; by default it is that of the previous page. */
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
