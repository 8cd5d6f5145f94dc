// Parses a filter from JSON to a FilterNode. Reports all issues with their paths in the request, up to
// ISSUES_MAX, and stops when the filter exceeds the limit of nodes.

import {
  type FieldPath,
  field,
  ISSUES_MAX,
  type ValidationIssue,
  type Violation,
  validationError,
} from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import { isJsonObject } from '../common/metadata-path.js';
import type { Json, JsonObject } from '../common/types.js';
import type { FilterNode, FilterTest } from './filter-node.js';
import { COMPLEMENTS, OPERATORS, type TestOperator, wellFormed } from './operators.js';

const FIELD_OPERATORS = [...Object.keys(OPERATORS), ...Object.keys(COMPLEMENTS), '$not'];
const LOGICAL_OPERATORS = ['$and', '$or', '$not'];

/**
 * Throws `invalid_filter` with issues under the field `name` of the request. For the limit of nodes, a
 * node is an operator, a plain value or an empty filter; the depth is the number of `$and`, `$or` and
 * `$not` around a condition.
 */
export function parseFilter(filter: JsonObject, limits: Limits, name = 'filter'): FilterNode {
  const parser = new Parser(limits);
  const node = allOf(parser.parseFields(filter, { path: [name], depth: 0 }));
  parser.throwIssues();
  return node;
}

/** Where the parser is. */
interface Position {
  readonly path: FieldPath;
  readonly depth: number;
}

class Parser {
  readonly #limits: Limits;
  readonly #issues: ValidationIssue[] = [];
  #nodeCount = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The conditions of a filter object, all of which must hold. */
  parseFields(filter: Json, position: Position): FilterNode[] {
    if (!isJsonObject(filter)) {
      this.#reportType(position, 'a filter is', 'an object', filter);
      return [];
    }
    const entries = Object.entries(filter);
    if (entries.length === 0) this.#countNode(position);
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, position)) return [];
      const inside = within(position, name);
      return name.startsWith('$')
        ? this.#parseLogical(name, value, inside)
        : this.#parseField(name, value, inside);
    });
  }

  throwIssues(): void {
    if (this.#issues.length > 0) throw validationError(this.#issues, 'invalid_filter');
  }

  #parseLogical(name: string, value: Json, position: Position): FilterNode[] {
    if (!LOGICAL_OPERATORS.includes(name)) {
      this.#reportOperator(
        name,
        FIELD_OPERATORS.includes(name)
          ? `${name} stands inside a field, as in {"field": {"${name}": …}}`
          : `there is no operator ${name}`,
        LOGICAL_OPERATORS,
        position,
      );
      return [];
    }
    const inside = this.#descend(position);
    if (inside === null) return [];
    if (name === '$not') return [{ kind: 'not', child: allOf(this.parseFields(value, inside)) }];
    if (!Array.isArray(value) || value.length === 0) {
      const actual = Array.isArray(value) ? 'an empty array' : describeType(value);
      this.#report(position, `${name} takes`, 'a non-empty array of filters', actual);
      return [];
    }
    const filters = value.map((filter, i) => this.parseFields(filter, within(inside, i)));
    return name === '$and' ? filters.flat() : [{ kind: 'or', children: filters.map(allOf) }];
  }

  #parseField(path: string, value: Json, position: Position): FilterNode[] {
    if (isJsonObject(value)) return this.#parseOperators(path, value, position);
    if (Array.isArray(value)) {
      const expected = 'a string, a number, a boolean, null, or an object with operators';
      this.#reportType(position, 'a field takes', expected, value);
      return [];
    }
    return this.#parseTest(path, '$eq', value, position);
  }

  #parseOperators(path: string, operators: JsonObject, position: Position): FilterNode[] {
    const entries = Object.entries(operators);
    if (entries.length === 0) {
      this.#report(position, 'a field takes', 'at least one operator', 'an empty object');
    }
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, position)) return [];
      const inside = within(position, name);
      if (name === '$not') return this.#parseFieldNot(path, value, inside);
      const operator = Object.hasOwn(COMPLEMENTS, name)
        ? COMPLEMENTS[name as keyof typeof COMPLEMENTS]
        : name;
      if (!Object.hasOwn(OPERATORS, operator)) {
        this.#reportOperator(name, explainNonOperator(path, name), FIELD_OPERATORS, inside);
        return [];
      }
      const tests = this.#parseTest(path, operator as TestOperator, value, inside);
      return operator === name ? tests : tests.map((child) => ({ kind: 'not', child }));
    });
  }

  #parseFieldNot(path: string, value: Json, position: Position): FilterNode[] {
    const inside = this.#descend(position);
    if (inside === null) return [];
    if (!isJsonObject(value)) {
      this.#reportType(position, '$not takes', 'an object with operators', value);
      return [];
    }
    return [{ kind: 'not', child: allOf(this.#parseOperators(path, value, inside)) }];
  }

  #parseTest(path: string, operator: TestOperator, value: Json, position: Position): FilterNode[] {
    this.#countNode(position);
    const { takes } = OPERATORS[operator];
    const operand =
      takes === 'list'
        ? this.#parseList(operator, value, position)
        : this.#parseValue(operator, value, position);
    if (operand === undefined) return [];
    // The operand was checked against the table.
    return [{ kind: 'test', path, operator, operand } as FilterTest];
  }

  #parseList(operator: TestOperator, list: Json, position: Position): Json | undefined {
    if (!Array.isArray(list)) {
      const expected = `an array, each value ${OPERATORS[operator].of.expected}`;
      this.#reportType(position, 'the operator takes', expected, list);
      return undefined;
    }
    const max = this.#limits.filterValuesMax;
    if (list.length > max) {
      this.#reportBound(position, 'values in one operator', max, list.length);
      return undefined;
    }
    const values = list.map((value, i) => this.#parseValue(operator, value, position, i));
    return values.filter((value) => value !== undefined);
  }

  /** `index` is that of the value in a list. */
  #parseValue(
    operator: TestOperator,
    value: Json,
    position: Position,
    index?: number,
  ): Json | undefined {
    const { accepts, expected } = OPERATORS[operator].of;
    if (!accepts(value)) {
      const at = index === undefined ? position : within(position, index);
      this.#reportType(at, 'the value is', expected, value);
      return undefined;
    }
    if (typeof value === 'string') return wellFormed(value);
    return value === 0 ? 0 : value;
  }

  #descend(position: Position): Position | null {
    this.#countNode(position);
    const { path, depth } = position;
    const max = this.#limits.filterDepthMax;
    if (depth < max) return { path, depth: depth + 1 };
    this.#reportBound(position, '$and, $or and $not inside one another', max, depth + 1);
    return null;
  }

  #countNode(position: Position): void {
    const max = this.#limits.filterNodesMax;
    this.#nodeCount++;
    if (this.#nodeCount <= max) return;
    this.#reportBound(position, 'conditions and operators', max, `more than ${max}`);
    // Do not continue: millions of nodes may follow.
    this.throwIssues();
  }

  #isNameShort(name: string, position: Position): boolean {
    const max = this.#limits.filterPathCharactersMax;
    if (name.length <= max) return true;
    this.#reportBound(position, 'characters in a field name', max, name.length);
    return false;
  }

  #reportOperator(
    name: string,
    detail: string,
    known: readonly string[],
    position: Position,
  ): void {
    const expected = known.join(', ');
    this.#add(position, { code: 'invalid_filter', detail, expected, actual: name });
  }

  #reportType(position: Position, subject: string, expected: string, value: Json): void {
    this.#report(position, subject, expected, describeType(value));
  }

  #report(position: Position, subject: string, expected: string, actual: string): void {
    const detail = `${subject} ${expected}; found ${actual}`;
    this.#add(position, { code: 'invalid_filter', detail, expected, actual });
  }

  #reportBound(position: Position, what: string, expected: number, actual: number | string): void {
    const detail = `at most ${expected} ${what}; found ${actual}`;
    this.#add(position, { code: 'limit_exceeded', detail, expected, actual });
  }

  #add({ path }: Position, violation: Violation): void {
    this.#issues.push({ ...violation, location: field(...path) });
    if (this.#issues.length === ISSUES_MAX) this.throwIssues();
  }
}

function allOf(children: readonly FilterNode[]): FilterNode {
  return children.length === 1 ? children[0] : { kind: 'and', children };
}

function within({ path, depth }: Position, key: string | number): Position {
  return { path: [...path, key], depth };
}

function explainNonOperator(path: string, name: string): string {
  if (LOGICAL_OPERATORS.includes(name)) {
    return `${name} stands beside fields and not inside one`;
  }
  return name.startsWith('$')
    ? `there is no operator ${name}`
    : `an object here holds operators only; a nested field is written "${path}.${name}"`;
}

function describeType(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') {
    return Number.isFinite(value) ? 'a number' : 'a number beyond float64';
  }
  return `a ${typeof value}`;
}
