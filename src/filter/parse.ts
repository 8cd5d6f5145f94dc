// Parses a filter from JSON to a FilterNode. Reports all issues with their paths in the request, up to ISSUES_MAX,
// and stops when the filter exceeds the limit for nodes.

import type { FieldPath } from '../common/errors.js';
import {
  FILTER_OPERATORS,
  type FilterOperatorEntry,
  type FilterOperatorName,
  ID_PATH,
  operatorNames,
  TEXT_PATH,
} from '../common/filter-operators.js';
import { foldCase } from '../common/fold-case.js';
import type { Limits } from '../common/limits.js';
import { isJsonObject } from '../common/metadata-path.js';
import type { Json, JsonObject } from '../common/types.js';
import {
  allOf,
  ELEMENT_PATH,
  type ElementFilter,
  type FilterNode,
  type FilterTest,
  type TestOperator,
  wordsPath,
} from './filter-node.js';
import { describeJson, IssueList, type Location, within } from './issues.js';
import { type OperandContext, parseOperand } from './operands.js';

const FIELD_OPERATORS: readonly string[] = [...operatorNames(() => true), '$not'];
const LOGICAL_OPERATORS = ['$and', '$or', '$not'];

/** What determines which filters are valid. */
export interface FilterContext {
  readonly limits: Limits;
  /** Whether a text index exists, which conditions on words need. */
  readonly hasText: boolean;
}

/**
 * Throws `invalid_filter` with issues under the field of the request at `path`. The limit for nodes counts
 * operators, plain values and empty filters. The depth is the number of `$and`, `$or`, `$not` and `$elem_match`
 * around a condition.
 */
export function parseFilter(
  filter: JsonObject,
  context: FilterContext,
  path: FieldPath = ['filter'],
): FilterNode {
  const parser = new Parser(context);
  const node = allOf(parser.parseFields(filter, { path, depth: 0 }));
  parser.issues.throwIssues();
  return node;
}

/** The names that may appear beside fields: conditions on id and text, and operators that combine filters. */
const FILTER_NAMES = [...LOGICAL_OPERATORS, ID_PATH, TEXT_PATH];

/** Operators for ids, which are strings. */
const ID_OPERATORS: readonly string[] = operatorNames(
  ({ fits, complementOf }) => fits.includes('id') && complementOf === undefined,
);

const CASES = ['sensitive', 'insensitive'];

class Parser implements OperandContext {
  readonly limits: Limits;
  readonly issues = new IssueList();
  readonly #hasText: boolean;
  #nodeCount = 0;
  #patternCount = 0;
  /** The number of `$elem_match` around the current condition. */
  #elementDepth = 0;

  constructor({ limits, hasText }: FilterContext) {
    this.limits = limits;
    this.#hasText = hasText;
  }

  /** Returns the conditions of a filter object, all of which must hold. */
  parseFields(filter: Json, location: Location): FilterNode[] {
    if (!isJsonObject(filter)) {
      this.issues.reportType(location, 'a filter, which is an object', filter);
      return [];
    }
    const entries = Object.entries(filter);
    if (entries.length === 0) this.#countNode(location);
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, location)) return [];
      const inside = within(location, name);
      if (name === TEXT_PATH && this.#elementDepth === 0) return this.#parseText(value, inside);
      const isField = !name.startsWith('$') || (name === ID_PATH && this.#elementDepth === 0);
      return isField
        ? this.#parseField(name, value, inside)
        : this.#parseLogical(name, value, inside);
    });
  }

  /** Parses the operand of `$elem_match`: operators for the elements themselves, or a filter for objects. */
  parseElements(value: Json, location: Location): ElementFilter | undefined {
    const inside = this.#descend(location);
    if (inside === null) return undefined;
    if (!isJsonObject(value) || Object.keys(value).length === 0) {
      this.issues.reportType(location, 'an object with operators or fields', value);
      return undefined;
    }
    const hasFields = !holdsOperators(value, this.limits.filterDepthMax);
    this.#elementDepth++;
    const node = allOf(
      hasFields
        ? this.parseFields(value, inside)
        : this.#parseOperators(ELEMENT_PATH, value, inside),
    );
    this.#elementDepth--;
    return { hasFields, node };
  }

  countPattern(location: Location): boolean {
    const max = this.limits.filterPatternsMax;
    this.#patternCount++;
    if (this.#patternCount <= max) return true;
    this.issues.reportBound(location, '$regex in one filter', max, this.#patternCount);
    return false;
  }

  #parseLogical(name: string, value: Json, location: Location): FilterNode[] {
    if (!LOGICAL_OPERATORS.includes(name)) {
      this.#reportOperator(name, explainMisplaced(name), FILTER_NAMES, location);
      return [];
    }
    const inside = this.#descend(location);
    if (inside === null) return [];
    if (name === '$not') return [{ kind: 'not', child: allOf(this.parseFields(value, inside)) }];
    if (!Array.isArray(value) || value.length === 0) {
      this.issues.reportType(location, 'a non-empty array of filters', value);
      return [];
    }
    const filters = value.map((filter, i) => this.parseFields(filter, within(inside, i)));
    return name === '$and' ? filters.flat() : [{ kind: 'or', children: filters.map(allOf) }];
  }

  /** Parses the conditions on the indexed text. */
  #parseText(value: Json, location: Location): FilterNode[] {
    if (!this.#hasText) {
      const detail = `${TEXT_PATH} needs a text index, which the collection lacks. Name the fields to search in "text" when you create a collection.`;
      this.issues.add(location, { code: 'invalid_filter', detail });
      return [];
    }
    if (!isJsonObject(value) || Object.keys(value).length === 0) {
      this.issues.reportType(location, 'an object with $match', value);
      return [];
    }
    return Object.entries(value).flatMap(([name, operand]): FilterNode[] => {
      const inside = within(location, name);
      if (name !== '$match') {
        const detail = `${name} does not apply to the text of a vector.`;
        this.#reportOperator(name, detail, ['$match'], inside);
        return [];
      }
      this.#countNode(inside);
      const words = parseOperand('words', operand, inside, this);
      if (words === undefined) return [];
      return [{ kind: 'test', path: wordsPath(words), operator: '$match', operand: words }];
    });
  }

  #parseField(path: string, value: Json, location: Location): FilterNode[] {
    if (isJsonObject(value)) return this.#parseOperators(path, value, location);
    if (Array.isArray(value)) {
      const expected = 'a string, a number, a boolean, null, or an object with operators';
      this.issues.reportType(location, expected, value);
      return [];
    }
    return this.#parseTest(path, '$eq', value, location);
  }

  #parseOperators(path: string, operators: JsonObject, location: Location): FilterNode[] {
    const entries = Object.entries(operators).filter(([name]) => name !== '$case');
    if (entries.length === 0) {
      const actual = Object.hasOwn(operators, '$case') ? '$case alone' : 'an empty object';
      this.issues.report(location, 'at least one operator', actual);
      return [];
    }
    const ignoresCase = this.#parseCase(operators, location);
    return entries.flatMap(([name, value]) => {
      if (!this.#isNameShort(name, location)) return [];
      const inside = within(location, name);
      if (name === '$not') return this.#parseFieldNot(path, value, inside);
      const operator = testOperatorOf(name);
      if (operator === null) {
        this.#reportOperator(name, explainNonOperator(path, name), FIELD_OPERATORS, inside);
        return [];
      }
      const tests = this.#parseTest(path, operator, value, inside, ignoresCase);
      return operator === name ? tests : tests.map((child) => ({ kind: 'not', child }));
    });
  }

  /** Whether the operators of a field ignore case. */
  #parseCase(operators: JsonObject, location: Location): boolean {
    if (!Object.hasOwn(operators, '$case')) return false;
    const { $case } = operators;
    const inside = within(location, '$case');
    if (typeof $case !== 'string' || !CASES.includes($case)) {
      const actual = typeof $case === 'string' ? 'another string' : describeJson($case ?? null);
      this.issues.report(inside, '"sensitive" or "insensitive"', actual);
      return false;
    }
    const applies = Object.keys(operators).some((name) => {
      const operator = testOperatorOf(name);
      return operator !== null && FILTER_OPERATORS[operator].comparesStrings;
    });
    if (!applies) {
      const expected = 'an operator that compares strings beside $case, such as $eq or $prefix';
      this.issues.report(inside, expected, 'none');
    }
    return $case === 'insensitive';
  }

  #parseFieldNot(path: string, value: Json, location: Location): FilterNode[] {
    const inside = this.#descend(location);
    if (inside === null) return [];
    if (!isJsonObject(value)) {
      this.issues.reportType(location, 'an object with operators', value);
      return [];
    }
    return [{ kind: 'not', child: allOf(this.#parseOperators(path, value, inside)) }];
  }

  #parseTest(
    path: string,
    operator: TestOperator,
    value: Json,
    location: Location,
    ignoresCase = false,
  ): FilterNode[] {
    this.#countNode(location);
    if (path === ID_PATH && !this.#isIdTest(operator, value, location)) return [];
    if (operator === '$match') {
      const detail = `$match belongs in ${TEXT_PATH}, as in {"${TEXT_PATH}": {"$match": "words"}}.`;
      this.#reportOperator(operator, detail, [TEXT_PATH], location);
      return [];
    }
    const operand = parseOperand(FILTER_OPERATORS[operator].takes, value, location, this);
    if (operand === undefined) return [];
    // The operand was parsed for this operator.
    const test = { kind: 'test', path, operator, operand } as FilterTest;
    return [ignoresCase ? ignoreCase(test) : test];
  }

  #isIdTest(operator: TestOperator, value: Json, location: Location): boolean {
    if (!ID_OPERATORS.includes(operator)) {
      const detail = `${operator} does not apply to ids, which are strings.`;
      this.#reportOperator(operator, detail, ID_OPERATORS, location);
      return false;
    }
    const isString = (id: Json) => typeof id === 'string';
    const wrong = Array.isArray(value) ? value.findIndex((id) => !isString(id)) : -1;
    const isId = Array.isArray(value) ? wrong === -1 : isString(value);
    if (!isId) {
      const at = Array.isArray(value) ? within(location, wrong) : location;
      const found = Array.isArray(value) ? value[wrong]! : value;
      this.issues.reportType(at, 'a string', found);
    }
    return isId;
  }

  #descend(location: Location): Location | null {
    this.#countNode(location);
    const { path, depth } = location;
    const max = this.limits.filterDepthMax;
    if (depth < max) return { path, depth: depth + 1 };
    const what = 'levels of $and, $or, $not and $elem_match';
    this.issues.reportBound(location, what, max, depth + 1);
    return null;
  }

  #countNode(location: Location): void {
    const max = this.limits.filterNodesMax;
    this.#nodeCount++;
    if (this.#nodeCount <= max) return;
    this.issues.reportBound(location, 'conditions and operators', max, `more than ${max}`);
    // Parsing stops here, because millions of nodes may follow.
    this.issues.throwIssues();
  }

  #isNameShort(name: string, location: Location): boolean {
    const max = this.limits.filterPathCharactersMax;
    if (name.length <= max) return true;
    this.issues.reportBound(location, 'characters in a field name', max, name.length);
    return false;
  }

  #reportOperator(
    name: string,
    detail: string,
    known: readonly string[],
    location: Location,
  ): void {
    const expected = known.join(', ');
    this.issues.add(location, { code: 'invalid_filter', detail, expected, actual: name });
  }
}

/** Whether the object contains operators of a field, as opposed to fields. `$not` may contain either. */
function holdsOperators(value: JsonObject, depthMax: number): boolean {
  return Object.entries(value).some(([name, inner]) =>
    name === '$not'
      ? depthMax > 0 && isJsonObject(inner) && holdsOperators(inner, depthMax - 1)
      : name === '$case' || testOperatorOf(name) !== null,
  );
}

/** Returns the operator of the tree that `name` denotes or is the complement of. */
function testOperatorOf(name: string): TestOperator | null {
  if (!Object.hasOwn(FILTER_OPERATORS, name)) return null;
  const { complementOf }: FilterOperatorEntry = FILTER_OPERATORS[name as FilterOperatorName];
  return (complementOf ?? name) as TestOperator;
}

function ignoreCase(test: FilterTest): FilterTest {
  if (!FILTER_OPERATORS[test.operator].comparesStrings) return test;
  if (test.operator === '$regex') return { ...test, operand: `(?i)${test.operand}` };
  // Folding keeps the type of the operand.
  return { ...test, operand: foldOperand(test.operand), ignoresCase: true } as FilterTest;
}

function foldOperand(operand: FilterTest['operand']): unknown {
  if (Array.isArray(operand)) return operand.map(foldOperand);
  return typeof operand === 'string' ? foldCase(operand) : operand;
}

function explainMisplaced(name: string): string {
  if (name === ID_PATH) return `${ID_PATH} is the id of the vector, not part of an element.`;
  if (name === TEXT_PATH) return `${TEXT_PATH} is the text of the vector, not part of an element.`;
  return FIELD_OPERATORS.includes(name)
    ? `${name} belongs inside a field, as in {"field": {"${name}": …}}.`
    : `There is no operator ${name}.`;
}

function explainNonOperator(path: string, name: string): string {
  if (LOGICAL_OPERATORS.includes(name)) {
    return `${name} belongs beside fields, not inside one.`;
  }
  return name.startsWith('$')
    ? `There is no operator ${name}.`
    : `Only operators may appear in this object. Write the nested field as "${path}.${name}".`;
}
