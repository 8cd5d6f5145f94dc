// One cell of an Arrow column as JSON text. 64-bit integers keep all their digits; dates and
// timestamps become ISO 8601 in UTC, to the millisecond. Types without a natural JSON form are
// refused up front.

import { DataType, type StructRow, Type, type Vector } from 'apache-arrow';
import { rowError } from './import-row.js';

/** Whether every value of the type has a JSON form. */
export function isCellType(type: DataType): boolean {
  if (DataType.isDictionary(type)) return isCellType(type.dictionary);
  if (DataType.isList(type) || DataType.isFixedSizeList(type) || DataType.isStruct(type)) {
    return type.children.every((child) => isCellType(child.type));
  }
  return (
    DataType.isNull(type) ||
    DataType.isBool(type) ||
    DataType.isInt(type) ||
    DataType.isFloat(type) ||
    DataType.isUtf8(type) ||
    type.typeId === Type.LargeUtf8 ||
    DataType.isDate(type) ||
    DataType.isTimestamp(type)
  );
}

/** Throws CliError for numbers that JSON has no way to write. */
export function cellText(place: string, name: string, type: DataType, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (DataType.isDictionary(type)) return cellText(place, name, type.dictionary, value);
  if (DataType.isDate(type) || DataType.isTimestamp(type)) {
    return JSON.stringify(isoText(place, name, Number(value)));
  }
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) {
    const item = type.children[0]!.type;
    const items = [...(value as Vector)].map((each) => cellText(place, name, item, each));
    return `[${items.join(',')}]`;
  }
  if (DataType.isStruct(type)) {
    const row = (value as StructRow).toJSON() as Record<string, unknown>;
    const members = type.children.map(
      (child) =>
        `${JSON.stringify(child.name)}:${cellText(place, name, child.type, row[child.name])}`,
    );
    return `{${members.join(',')}}`;
  }
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw rowError(place, `${name} is ${value}, which JSON cannot say; expected a finite number`);
  }
  return JSON.stringify(value);
}

/** JavaScript's calendar ends 100 million days from 1970. */
function isoText(place: string, name: string, ms: number): string {
  const date = new Date(ms);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw rowError(place, `${name} is ${ms} ms from 1970, expected a date before the year 275760`);
}
