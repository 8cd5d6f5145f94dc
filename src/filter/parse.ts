// Parses a filter from JSON to a FilterNode. Reports every issue with its path in the request, up to
// the bound on issues, and stops where the filter exceeds the bound on nodes.

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
 * Throws `invalid_filter` with issues under the field `name` of the request. A node, for the bound
 * on nodes, is an operator, a plain value or an empty filter; the depth is the number of `$and`,
 * `$or` and `$not` around a condition.
 */
export function parseFilter(filter: JsonObject, limits: Limits, name = 'filter'): FilterNode {
  const parser = new Parser(limits);
  const node = allOf(parser.parseFields(filter, { path: [name], depth: 0 }));
  parser.throwIssues();
  return node;
}

/** The value that is being parsed. */
interface Place {
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
  parseFields(filter: Json, place: Place): FilterNode[] {
    if (!isJsonObject(filter)) {
      this.#reportType(place, 'a filter is', 'an object', filter);
      return [];
    }
    const entries = Object.entries(filter);
    if (entries.length === 0) this.#countNode(place);
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, place)) return [];
      const inside = within(place, name);
      return name.startsWith('$')
        ? this.#parseLogical(name, value, inside)
        : this.#parseField(name, value, inside);
    });
  }

  throwIssues(): void {
    if (this.#issues.length > 0) throw validationError(this.#issues, 'invalid_filter');
  }

  #parseLogical(name: string, value: Json, place: Place): FilterNode[] {
    if (!LOGICAL_OPERATORS.includes(name)) {
      this.#reportOperator(
        name,
        FIELD_OPERATORS.includes(name)
          ? `${name} stands inside a field, as in {"field": {"${name}": …}}`
          : `there is no operator ${name}`,
        LOGICAL_OPERATORS,
        place,
      );
      return [];
    }
    const inside = this.#descend(place);
    if (inside === null) return [];
    if (name === '$not') return [{ kind: 'not', child: allOf(this.parseFields(value, inside)) }];
    if (!Array.isArray(value) || value.length === 0) {
      const actual = Array.isArray(value) ? 'an empty array' : describeType(value);
      this.#report(place, `${name} takes`, 'a non-empty array of filters', actual);
      return [];
    }
    const filters = value.map((filter, i) => this.parseFields(filter, within(inside, i)));
    return name === '$and' ? filters.flat() : [{ kind: 'or', children: filters.map(allOf) }];
  }

  #parseField(path: string, value: Json, place: Place): FilterNode[] {
    if (isJsonObject(value)) return this.#parseOperators(path, value, place);
    if (Array.isArray(value)) {
      const expected = 'a string, a number, a boolean, null, or an object with operators';
      this.#reportType(place, 'a field takes', expected, value);
      return [];
    }
    return this.#parseTest(path, '$eq', value, place);
  }

  #parseOperators(path: string, operators: JsonObject, place: Place): FilterNode[] {
    const entries = Object.entries(operators);
    if (entries.length === 0) {
      this.#report(place, 'a field takes', 'at least one operator', 'an empty object');
    }
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, place)) return [];
      const inside = within(place, name);
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

  #parseFieldNot(path: string, value: Json, place: Place): FilterNode[] {
    const inside = this.#descend(place);
    if (inside === null) return [];
    if (!isJsonObject(value)) {
      this.#reportType(place, '$not takes', 'an object with operators', value);
      return [];
    }
    return [{ kind: 'not', child: allOf(this.#parseOperators(path, value, inside)) }];
  }

  #parseTest(path: string, operator: TestOperator, value: Json, place: Place): FilterNode[] {
    this.#countNode(place);
    const { takes } = OPERATORS[operator];
    const operand =
      takes === 'list'
        ? this.#parseList(operator, value, place)
        : this.#parseValue(operator, value, place);
    if (operand === undefined) return [];
    // The table has just said that the operator takes this operand.
    return [{ kind: 'test', path, operator, operand } as FilterTest];
  }

  #parseList(operator: TestOperator, list: Json, place: Place): Json | undefined {
    if (!Array.isArray(list)) {
      const expected = `an array, each value ${OPERATORS[operator].of.expected}`;
      this.#reportType(place, 'the operator takes', expected, list);
      return undefined;
    }
    const max = this.#limits.filterValuesMax;
    if (list.length > max) {
      this.#reportBound(place, 'values in one operator', max, list.length);
      return undefined;
    }
    const values = list.map((value, i) => this.#parseValue(operator, value, place, i));
    return values.filter((value) => value !== undefined);
  }

  /** `index`: of the value, where the operand is a list. */
  #parseValue(operator: TestOperator, value: Json, place: Place, index?: number): Json | undefined {
    const { accepts, expected } = OPERATORS[operator].of;
    if (!accepts(value)) {
      const at = index === undefined ? place : within(place, index);
      this.#reportType(at, 'the value is', expected, value);
      return undefined;
    }
    if (typeof value === 'string') return wellFormed(value);
    return value === 0 ? 0 : value;
  }

  #descend(place: Place): Place | null {
    this.#countNode(place);
    const { path, depth } = place;
    const max = this.#limits.filterDepthMax;
    if (depth < max) return { path, depth: depth + 1 };
    this.#reportBound(place, '$and, $or and $not inside one another', max, depth + 1);
    return null;
  }

  #countNode(place: Place): void {
    const max = this.#limits.filterNodesMax;
    this.#nodeCount++;
    if (this.#nodeCount <= max) return;
    this.#reportBound(place, 'conditions and operators', max, `more than ${max}`);
    // Millions of nodes may follow.
    this.throwIssues();
  }

  #isNameShort(name: string, place: Place): boolean {
    const max = this.#limits.filterPathCharactersMax;
    if (name.length <= max) return true;
    this.#reportBound(place, 'characters in a field name', max, name.length);
    return false;
  }

  #reportOperator(name: string, detail: string, known: readonly string[], place: Place): void {
    const expected = known.join(', ');
    this.#add(place, { code: 'invalid_filter', detail, expected, actual: name });
  }

  #reportType(place: Place, subject: string, expected: string, value: Json): void {
    this.#report(place, subject, expected, describeType(value));
  }

  #report(place: Place, subject: string, expected: string, actual: string): void {
    const detail = `${subject} ${expected}; found ${actual}`;
    this.#add(place, { code: 'invalid_filter', detail, expected, actual });
  }

  #reportBound(place: Place, what: string, expected: number, actual: number | string): void {
    const detail = `at most ${expected} ${what}; found ${actual}`;
    this.#add(place, { code: 'limit_exceeded', detail, expected, actual });
  }

  #add({ path }: Place, violation: Violation): void {
    this.#issues.push({ ...violation, location: field(...path) });
    if (this.#issues.length === ISSUES_MAX) this.throwIssues();
  }
}

function allOf(children: readonly FilterNode[]): FilterNode {
  return children.length === 1 ? children[0] : { kind: 'and', children };
}

function within({ path, depth }: Place, key: string | number): Place {
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
