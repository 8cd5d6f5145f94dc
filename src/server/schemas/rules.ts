// Schemas of values that have rules of their own, such as vectors: what a rule reads takes the place of the value.

import { z } from 'zod';
import type { FieldPath, Violation } from '../../common/errors.js';

/** A violation, and the members that lead to what it is about; absent for the value itself. */
type Found = Violation & { readonly path?: FieldPath };

/** @param read takes any value; its parameter has the type that clients send. */
export function readBy<Sent, Result extends object | string>(
  read: (value: Sent) => Result,
): z.ZodType<Exclude<Result, Violation>, Sent> {
  const schema = z.custom<Exclude<Result, Violation>>().superRefine((value: unknown, context) => {
    const result: object | string = read(value as Sent);
    if (!isViolation(result)) {
      context.value = result as Exclude<Result, Violation>;
      return;
    }
    const { path = [], ...params } = result;
    context.addIssue({ code: 'custom', path: [...path], message: params.detail, params });
  });
  return schema as z.ZodType<Exclude<Result, Violation>, unknown> as z.ZodType<
    Exclude<Result, Violation>,
    Sent
  >;
}

function isViolation(result: object | string): result is Found {
  return typeof result === 'object' && 'code' in result;
}
