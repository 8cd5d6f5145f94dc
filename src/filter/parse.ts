// From a filter as JSON to a FilterNode. Reports every finding with a pointer into the filter, up
// to the bound on findings, and stops counting where a bound on the filter is passed.

import { ISSUES_MAX, SagittaError, type ValidationIssue } from '../common/errors.js';
import type { Limits } from '../common/limits.js';
import { isJsonObject } from '../common/metadata-path.js';
import type { Json, JsonObject } from '../common/types.js';
import type { FilterNode, FilterTest } from './filter-node.js';
import { COMPLEMENTS, OPERATORS, type TestOperator, wellFormed } from './operators.js';

const FIELD_OPERATORS = [...Object.keys(OPERATORS), ...Object.keys(COMPLEMENTS), '$not'];
const LOGICAL_OPERATORS = ['$and', '$or', '$not'];

/**
 * Throws `invalid_filter`. A node, for the bound on nodes, is an operator, a plain value or an
 * empty filter; the depth is the number of `$and`, `$or` and `$not` around a condition.
 */
export function parseFilter(filter: JsonObject, limits: Limits): FilterNode {
  const parser = new Parser(limits);
  const node = allOf(parser.parseFields(filter, { pointer: '', depth: 0 }));
  parser.throwFindings();
  return node;
}

/** Where the parser stands. */
interface Place {
  readonly pointer: string;
  readonly depth: number;
}

class Parser {
  readonly #limits: Limits;
  readonly #items: ValidationIssue[] = [];
  #nodeCount = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The conditions of a filter object, all of which must hold. */
  parseFields(filter: Json, place: Place): FilterNode[] {
    if (!isJsonObject(filter)) {
      this.#reportType(place.pointer, 'a filter is', 'an object', filter);
      return [];
    }
    const entries = Object.entries(filter);
    if (entries.length === 0) this.#countNode(place.pointer);
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, place)) return [];
      const inside = within(place, name);
      return name.startsWith('$')
        ? this.#parseLogical(name, value, inside)
        : this.#parseField(name, value, inside);
    });
  }

  throwFindings(): void {
    const first = this.#items[0];
    if (first === undefined) return;
    const more = this.#items.length === 1 ? '' : ' (the first of several findings)';
    const where = first.pointer === '' ? '' : `at ${first.pointer}: `;
    throw new SagittaError('invalid_filter', `${where}${first.detail}${more}`, {
      issues: this.#items,
    });
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
      this.#report(place.pointer, `${name} takes`, 'a non-empty array of filters', actual);
      return [];
    }
    const filters = value.map((filter, i) => this.parseFields(filter, within(inside, String(i))));
    return name === '$and' ? filters.flat() : [{ kind: 'or', children: filters.map(allOf) }];
  }

  #parseField(path: string, value: Json, place: Place): FilterNode[] {
    if (isJsonObject(value)) return this.#parseOperators(path, value, place);
    if (Array.isArray(value)) {
      const expected = 'a string, a number, a boolean, null, or an object with operators';
      this.#reportType(place.pointer, 'a field takes', expected, value);
      return [];
    }
    return this.#parseTest(path, '$eq', value, place);
  }

  #parseOperators(path: string, operators: JsonObject, place: Place): FilterNode[] {
    const entries = Object.entries(operators);
    if (entries.length === 0) {
      this.#report(place.pointer, 'a field takes', 'at least one operator', 'an empty object');
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
      this.#reportType(place.pointer, '$not takes', 'an object with operators', value);
      return [];
    }
    return [{ kind: 'not', child: allOf(this.#parseOperators(path, value, inside)) }];
  }

  #parseTest(path: string, operator: TestOperator, value: Json, place: Place): FilterNode[] {
    this.#countNode(place.pointer);
    const { takes } = OPERATORS[operator];
    const operand =
      takes === 'list'
        ? this.#parseList(operator, value, place)
        : this.#parseValue(operator, value, place.pointer);
    if (operand === undefined) return [];
    // The table has just said that the operator takes this operand.
    return [{ kind: 'test', path, operator, operand } as FilterTest];
  }

  #parseList(operator: TestOperator, list: Json, place: Place): Json | undefined {
    if (!Array.isArray(list)) {
      const expected = `an array, each value ${OPERATORS[operator].of.expected}`;
      this.#reportType(place.pointer, 'the operator takes', expected, list);
      return undefined;
    }
    const max = this.#limits.filterValuesMax;
    if (list.length > max) {
      this.#reportBound(place.pointer, 'values in one operator', max, list.length);
      return undefined;
    }
    const values = list.map((value, i) =>
      this.#parseValue(operator, value, within(place, String(i)).pointer),
    );
    return values.filter((value) => value !== undefined);
  }

  #parseValue(operator: TestOperator, value: Json, pointer: string): Json | undefined {
    const { accepts, expected } = OPERATORS[operator].of;
    if (!accepts(value)) {
      this.#reportType(pointer, 'the value is', expected, value);
      return undefined;
    }
    if (typeof value === 'string') return wellFormed(value);
    return value === 0 ? 0 : value;
  }

  #descend({ pointer, depth }: Place): Place | null {
    this.#countNode(pointer);
    const max = this.#limits.filterDepthMax;
    if (depth < max) return { pointer, depth: depth + 1 };
    this.#reportBound(pointer, '$and, $or and $not inside one another', max, depth + 1);
    return null;
  }

  #countNode(pointer: string): void {
    const max = this.#limits.filterNodesMax;
    this.#nodeCount++;
    if (this.#nodeCount <= max) return;
    this.#reportBound(pointer, 'conditions and operators', max, `more than ${max}`);
    // What follows may be millions of them.
    this.throwFindings();
  }

  #isNameShort(name: string, { pointer }: Place): boolean {
    const max = this.#limits.filterPathCharactersMax;
    if (name.length <= max) return true;
    this.#reportBound(pointer, 'characters in a field name', max, name.length);
    return false;
  }

  #reportOperator(name: string, detail: string, known: readonly string[], place: Place): void {
    const expected = known.join(', ');
    this.#add({ pointer: place.pointer, code: 'invalid_filter', detail, expected, actual: name });
  }

  #reportType(pointer: string, subject: string, expected: string, value: Json): void {
    this.#report(pointer, subject, expected, describeType(value));
  }

  #report(pointer: string, subject: string, expected: string, actual: string): void {
    const detail = `${subject} ${expected}; found ${actual}`;
    this.#add({ pointer, code: 'invalid_filter', detail, expected, actual });
  }

  #reportBound(pointer: string, what: string, expected: number, actual: number | string): void {
    const detail = `at most ${expected} ${what}; found ${actual}`;
    this.#add({ pointer, code: 'limit_exceeded', detail, expected, actual });
  }

  #add(item: ValidationIssue): void {
    this.#items.push(item);
    if (this.#items.length === ISSUES_MAX) this.throwFindings();
  }
}

function allOf(children: readonly FilterNode[]): FilterNode {
  return children.length === 1 ? children[0] : { kind: 'and', children };
}

function within({ pointer, depth }: Place, name: string): Place {
  const token = name.replaceAll('~', '~0').replaceAll('/', '~1');
  return { pointer: `${pointer}/${token}`, depth };
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
