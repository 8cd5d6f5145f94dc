// The editor's model of a filter: conditions in groups. Every filter can be parsed; parts without controls in
// the editor stay JSON, so that parsing and writing a filter never changes what it selects.

import { ID_PATH, operatorNames, TEXT_PATH } from '../../../../../src/common/filter-operators.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../../../src/common/types.js';
import { OPERATOR_NAMES, type OperatorName, operatorOf } from './filter-operators.js';

export interface FilterCondition {
  readonly kind: 'condition';
  /** Identifies the item while it is edited. */
  readonly key: number;
  readonly path: string;
  readonly operator: OperatorName;
  /** Undefined while the condition is incomplete; it is then left out of the filter. */
  readonly operand: Json | undefined;
  readonly ignoresCase: boolean;
}

/** `all`: every item must hold; `any`: at least one; `not`: not all of them. */
export interface FilterGroup {
  readonly kind: 'all' | 'any' | 'not';
  readonly key: number;
  readonly items: readonly FilterItem[];
}

/** A part of a filter that the editor shows as JSON. */
interface FilterText {
  readonly kind: 'json';
  readonly key: number;
  readonly filter: JsonObject;
}

export type FilterItem = FilterCondition | FilterGroup | FilterText;

let nextKey = 1;

export function newCondition(path = ''): FilterCondition {
  const operator = path === TEXT_PATH ? '$match' : '$eq';
  return {
    kind: 'condition',
    key: nextKey++,
    path,
    operator,
    operand: undefined,
    ignoresCase: false,
  };
}

export function newGroup(kind: FilterGroup['kind'], items: readonly FilterItem[]): FilterGroup {
  return { kind, key: nextKey++, items };
}

/** The filter as a group whose items must all hold. */
export function parseFilterGroup(filter: JsonObject | undefined): FilterGroup {
  return newGroup('all', filter === undefined ? [] : readMembers(filter));
}

function readMembers(filter: JsonObject): FilterItem[] {
  return Object.entries(filter).flatMap(
    ([name, value]) => readMember(name, value) ?? [asText({ [name]: value })],
  );
}

/** Undefined if the editor has no controls for the member. */
function readMember(name: string, value: Json): FilterItem[] | undefined {
  if (name === '$and' || name === '$or') {
    if (!Array.isArray(value) || value.length === 0 || !value.every(isFilled)) return undefined;
    return [newGroup(name === '$and' ? 'all' : 'any', value.map(readElement))];
  }
  if (name === '$not') return isFilled(value) ? [newGroup('not', readMembers(value))] : undefined;
  if (name.startsWith('$') && name !== ID_PATH && name !== TEXT_PATH) return undefined;
  // The editor uses an empty path for incomplete conditions.
  if (name === '') return undefined;
  if (isJsonObject(value)) return readOperators(name, value);
  if (Array.isArray(value)) return undefined;
  return [condition(name, value === null ? 'null' : '$eq', value)];
}

/** A filter in an array: a single item, or a group of several. */
function readElement(filter: JsonObject): FilterItem {
  const items = readMembers(filter);
  return items.length === 1 ? items[0]! : newGroup('all', items);
}

function readOperators(path: string, operators: JsonObject): FilterItem[] | undefined {
  const { $case, ...rest } = operators;
  if ($case !== undefined && $case !== 'insensitive' && $case !== 'sensitive') return undefined;
  const ignoresCase = $case === 'insensitive';
  const found: FilterItem[] = [];
  for (const [name, value] of Object.entries(rest)) {
    const conditions = readOperator(path, name, value);
    if (conditions === undefined) return undefined;
    for (const item of conditions) {
      found.push(comparesStrings(item.operator) ? { ...item, ignoresCase } : item);
    }
  }
  return found.length === 0 ? undefined : found;
}

function readOperator(path: string, name: string, value: Json): FilterCondition[] | undefined {
  if (isJsonObject(value) && (name === '$date' || name === '$size')) {
    const parts = Object.entries(value).map(([inner, operand]) => {
      const operator = findOperator([name, inner], operand);
      return operator && condition(path, operator, operand);
    });
    return parts.length > 0 && parts.every((part) => part !== undefined) ? parts : undefined;
  }
  if (name === '$date') return [condition(path, 'date:is', value)];
  const operator = findOperator([name], value);
  return operator && [condition(path, operator, value)];
}

/** The operator with these keys that accepts this operand. */
function findOperator(keys: readonly string[], operand: Json): OperatorName | undefined {
  return OPERATOR_NAMES.find((name) => {
    const operator = operatorOf(name);
    return operator.keys.join() === keys.join() && accepts(name, operand);
  });
}

function accepts(name: OperatorName, operand: Json): boolean {
  const operator = operatorOf(name);
  switch (operator.kind) {
    case 'fixed':
      return operator.operand === operand;
    case 'scalar':
      return typeof operand !== 'object';
    case 'list':
      return Array.isArray(operand) && operand.every((value) => !isCompound(value));
    case 'string':
    case 'date':
    case 'type':
      return typeof operand === 'string';
    case 'count':
      return typeof operand === 'number';
    case 'json':
      return isJsonObject(operand);
  }
}

/** The filter, and the JSON pointer of each of its items by item key. */
export interface WrittenFilter {
  /** Undefined if every vector passes. */
  readonly filter: JsonObject | undefined;
  readonly pointers: ReadonlyMap<number, string>;
}

export function writeFilter(root: FilterGroup): WrittenFilter {
  const pointers = new Map<number, string>();
  pointers.set(root.key, '');
  const filter = writeAll(root.items, '', pointers);
  return { filter: Object.keys(filter).length === 0 ? undefined : filter, pointers };
}

/** One object for items that must all hold, or `$and` if two items need the same member. */
function writeAll(
  items: readonly FilterItem[],
  at: string,
  pointers: Map<number, string>,
): JsonObject {
  const complete = items.filter(isComplete);
  const merged = mergeAll(complete, at, pointers);
  if (merged !== undefined) return merged;
  return { $and: complete.map((item, i) => writeAll([item], `${at}/$and/${i}`, pointers)) };
}

/** Undefined if two items need the same member. */
function mergeAll(
  items: readonly FilterItem[],
  at: string,
  pointers: Map<number, string>,
): JsonObject | undefined {
  let merged: JsonObject = {};
  for (const item of items) {
    const next =
      item.kind === 'condition'
        ? withCondition(merged, item)
        : withMembers(merged, writeItem(item, at, pointers));
    if (next === undefined) return undefined;
    merged = next;
  }
  for (const item of items) {
    if (item.kind === 'condition') pointers.set(item.key, conditionPointer(merged, item, at));
    else if (item.kind === 'json') pointers.set(item.key, textPointer(item, at));
  }
  return merged;
}

function writeItem(
  item: FilterGroup | FilterText,
  at: string,
  pointers: Map<number, string>,
): JsonObject {
  if (item.kind === 'json') return item.filter;
  const name = item.kind === 'all' ? '$and' : item.kind === 'any' ? '$or' : '$not';
  const inside = `${at}/${name}`;
  pointers.set(item.key, inside);
  if (item.kind === 'not') return { $not: writeAll(item.items, inside, pointers) };
  const filters = item.items
    .filter(isComplete)
    .map((inner, i) => writeElement(inner, `${inside}/${i}`, pointers));
  return { [name]: filters };
}

/** In an array of filters, a group of the kind `all` needs no `$and` of its own. */
function writeElement(item: FilterItem, at: string, pointers: Map<number, string>): JsonObject {
  if (item.kind !== 'all') return writeAll([item], at, pointers);
  pointers.set(item.key, at);
  return writeAll(item.items, at, pointers);
}

function withMembers(merged: JsonObject, members: JsonObject): JsonObject | undefined {
  const isTaken = Object.keys(members).some((name) => Object.hasOwn(merged, name));
  return isTaken ? undefined : { ...merged, ...members };
}

function withCondition(merged: JsonObject, item: FilterCondition): JsonObject | undefined {
  const { path, operand } = item;
  if (!Object.hasOwn(merged, path)) return { ...merged, [path]: fieldOf(item) };
  const beside = merged[path]!;
  const isOtherCase =
    comparesStrings(item.operator) &&
    hasStringOperator(beside) &&
    item.ignoresCase !== (isJsonObject(beside) && beside.$case === 'insensitive');
  if (!isJsonObject(beside) || isOtherCase) return undefined;
  const [outer, inner] = operatorOf(item.operator).keys;
  const own = item.ignoresCase ? { $case: 'insensitive' as const } : {};
  if (!Object.hasOwn(beside, outer)) {
    const value = inner === undefined ? operand! : { [inner]: operand! };
    return { ...merged, [path]: { ...beside, [outer]: value, ...own } };
  }
  const range = beside[outer]!;
  if (inner === undefined || !isJsonObject(range) || Object.hasOwn(range, inner)) return undefined;
  return { ...merged, [path]: { ...beside, [outer]: { ...range, [inner]: operand! } } };
}

/** The value at a condition's path: a plain value for equality, otherwise the operator. */
function fieldOf({ path, operator, operand, ignoresCase }: FilterCondition): Json {
  if (isPlain(operator) && !ignoresCase && !path.startsWith('$')) return operand!;
  const [outer, inner] = operatorOf(operator).keys;
  const value = inner === undefined ? operand! : { [inner]: operand! };
  return ignoresCase ? { [outer]: value, $case: 'insensitive' } : { [outer]: value };
}

function conditionPointer(merged: JsonObject, item: FilterCondition, at: string): string {
  const keys = isJsonObject(merged[item.path]) ? operatorOf(item.operator).keys : [];
  return at + pointerOf([item.path, ...keys]);
}

function textPointer({ filter }: FilterText, at: string): string {
  const names = Object.keys(filter);
  return names.length === 1 ? at + pointerOf(names) : at;
}

/** A JSON pointer (RFC 6901). */
function pointerOf(names: readonly string[]): string {
  return names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Whether the item restricts the filter yet. */
function isComplete(item: FilterItem): boolean {
  if (item.kind === 'json') return Object.keys(item.filter).length > 0;
  if (item.kind === 'condition') return item.path !== '' && item.operand !== undefined;
  return item.items.some(isComplete);
}

/** Replaces an item of the group at any depth, or removes it if `replacement` is null. */
export function replaceItem(
  group: FilterGroup,
  key: number,
  replacement: FilterItem | null,
): FilterGroup {
  const items = group.items.flatMap((item): FilterItem[] => {
    if (item.key === key) return replacement === null ? [] : [replacement];
    return [isGroup(item) ? replaceItem(item, key, replacement) : item];
  });
  return { ...group, items };
}

export function isGroup(item: FilterItem): item is FilterGroup {
  return item.kind === 'all' || item.kind === 'any' || item.kind === 'not';
}

/** The item that a server error is about: the innermost one that contains the pointer. */
export function itemAt(pointers: ReadonlyMap<number, string>, pointer: string): number | undefined {
  let found: number | undefined;
  let length = -1;
  for (const [key, own] of pointers) {
    const isInside = pointer === own || pointer.startsWith(`${own}/`);
    if (isInside && own.length >= length) {
      found = key;
      length = own.length;
    }
  }
  return found;
}

function condition(path: string, operator: OperatorName, operand: Json): FilterCondition {
  return { kind: 'condition', key: nextKey++, path, operator, operand, ignoresCase: false };
}

function asText(filter: JsonObject): FilterText {
  return { kind: 'json', key: nextKey++, filter };
}

function comparesStrings(operator: OperatorName): boolean {
  return operatorOf(operator).comparesStrings;
}

function hasStringOperator(field: Json): boolean {
  if (!isJsonObject(field)) return true;
  return Object.keys(field).some((name) => STRING_OPERATORS.includes(name));
}

const STRING_OPERATORS: readonly string[] = operatorNames((entry) => entry.comparesStrings);

function isPlain(operator: OperatorName): boolean {
  return operator === '$eq' || operator === 'null';
}

function isCompound(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}

/** Whether the value is a non-empty object. An empty one passes every vector and has no conditions to show. */
function isFilled(value: Json): value is JsonObject {
  return isJsonObject(value) && Object.keys(value).length > 0;
}
