/** sprig's functions for semantic versions (semver.org 2.0.0). */
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { objectMethod } from '../time-value.ts';
import type { TemplateObject, Value } from '../value.ts';

const VERSION = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/;
const CONSTRAINT =
	/^(=|==|!=|>|<|>=|=>|<=|=<|~|~>|\^)?\s*v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

class Version implements TemplateObject {
	readonly typeName = '*semver.Version';
	readonly numbers: readonly [bigint, bigint, bigint];
	readonly prerelease: string;
	readonly metadata: string;
	readonly original: string;

	constructor(numbers: readonly [bigint, bigint, bigint], prerelease: string, metadata: string, original: string) {
		this.numbers = numbers;
		this.prerelease = prerelease;
		this.metadata = metadata;
		this.original = original;
	}

	member(name: string): Value | undefined {
		switch (name) {
			case 'Major':
			case 'Minor':
			case 'Patch':
				return objectMethod(name, '', () => this.numbers[['Major', 'Minor', 'Patch'].indexOf(name) as 0]);
			case 'Prerelease':
				return objectMethod(name, '', () => this.prerelease);
			case 'Metadata':
				return objectMethod(name, '', () => this.metadata);
			case 'Original':
				return objectMethod(name, '', () => this.original);
			case 'String':
				return objectMethod(name, '', () => this.text());
			case 'Compare':
				return objectMethod(name, 'any', (other: Value) => BigInt(other instanceof Version ? compare(this, other) : 0));
			case 'Equal':
				return objectMethod(name, 'any', (other: Value) => other instanceof Version && compare(this, other) === 0);
			case 'LessThan':
				return objectMethod(name, 'any', (other: Value) => other instanceof Version && compare(this, other) < 0);
			case 'GreaterThan':
				return objectMethod(name, 'any', (other: Value) => other instanceof Version && compare(this, other) > 0);
			default:
				return undefined;
		}
	}

	text(): string {
		const suffix = `${this.prerelease && `-${this.prerelease}`}${this.metadata && `+${this.metadata}`}`;
		return this.numbers.join('.') + suffix;
	}
}

/** The functions `semver` and `semverCompare`. */
export const VERSION_FUNCTIONS: FunctionList = {
	semver: defineFunction('string', parse),
	semverCompare: defineFunction('string string', (run, constraint: string, version: string) =>
		satisfies(run, constraint, parse(run, version)),
	),
};

function parse(run: TemplateRun, text: string): Version {
	const found = VERSION.exec(text);
	if (!found) return run.fail('Invalid Semantic Version');
	const [, major, minor = '0', patch = '0', prerelease = '', metadata = ''] = found;
	return new Version([BigInt(major!), BigInt(minor), BigInt(patch)], prerelease, metadata, text);
}

function compare(a: Version, b: Version): number {
	for (const i of [0, 1, 2] as const) if (a.numbers[i] !== b.numbers[i]) return a.numbers[i] < b.numbers[i] ? -1 : 1;
	if (a.prerelease === b.prerelease) return 0;
	if (a.prerelease === '' || b.prerelease === '') return a.prerelease === '' ? 1 : -1;
	const left = a.prerelease.split('.');
	const right = b.prerelease.split('.');
	for (let i = 0; ; i++) {
		const [x, y] = [left[i], right[i]];
		if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? -1 : 1;
		if (x === y) continue;
		const [numeric, otherNumeric] = [/^\d+$/.test(x), /^\d+$/.test(y)];
		if (numeric && otherNumeric) return BigInt(x) < BigInt(y) ? -1 : 1;
		if (numeric !== otherNumeric) return numeric ? -1 : 1;
		return x < y ? -1 : 1;
	}
}

/** Checks a version constraint: alternatives separated by `||`, each of them comparisons separated by commas or spaces. */
function satisfies(run: TemplateRun, constraint: string, version: Version): boolean {
	run.budget.text(constraint.length);
	return constraint.split('||').some(alternative =>
		withRanges(alternative)
			.replace(/([=<>!~^])\s+/g, '$1')
			.split(/[\s,]+/)
			.filter(Boolean)
			.every(part => holds(run, part, version)),
	);
}

/** Rewrites `1.2 - 1.4` as `>=1.2,<=1.4`. */
function withRanges(constraint: string): string {
	const words = constraint.split(/\s+/).filter(Boolean);
	let text = '';
	for (let at = 0; at < words.length; at++) {
		const isRange = words[at + 1] === '-' && at + 2 < words.length;
		text += isRange ? ` >=${words[at]},<=${words[at + 2]}` : ` ${words[at]}`;
		if (isRange) at += 2;
	}
	return text;
}

function holds(run: TemplateRun, part: string, version: Version): boolean {
	const found = CONSTRAINT.exec(part);
	if (!found) return run.fail(`improper constraint: ${part}`);
	const [, operator = '', ...rest] = found;
	const numbers = rest.slice(0, 3).map(text => (text === undefined || /[xX*]/.test(text) ? undefined : BigInt(text)));
	const prerelease = rest[3] ?? '';
	// Number of components given. The others match anything.
	const given = numbers.indexOf(undefined) === -1 ? 3 : numbers.indexOf(undefined);
	const low = new Version(
		[numbers[0] ?? 0n, given > 1 ? numbers[1]! : 0n, given > 2 ? numbers[2]! : 0n],
		prerelease,
		'',
		'',
	);
	// A prerelease version matches only a constraint that names a prerelease.
	if (version.prerelease !== '' && prerelease === '') return false;
	const order = compare(version, low);
	const below = (index: number): boolean => index < 0 || compare(version, next(low, index)) < 0;
	switch (operator) {
		case '>':
			return given === 3 ? order > 0 : !below(given - 1);
		case '<':
			return order < 0;
		case '>=':
		case '=>':
			return order >= 0;
		case '<=':
		case '=<':
			return given === 3 ? order <= 0 : below(given - 1);
		case '!=':
			return given === 3 ? order !== 0 : order < 0 || !below(given - 1);
		case '~':
		case '~>':
			return order >= 0 && below(Math.min(given, 2) - 1);
		case '^': {
			const first = low.numbers.findIndex(number => number !== 0n);
			return order >= 0 && below(first === -1 ? given - 1 : Math.min(first, given - 1));
		}
		default:
			return given === 3 ? order === 0 : order >= 0 && below(given - 1);
	}
}

/** Returns the lowest version whose component at an index is one higher. */
function next(version: Version, index: number): Version {
	const numbers = version.numbers.map((number, i) => (i < index ? number : i === index ? number + 1n : 0n));
	return new Version(numbers as unknown as Version['numbers'], '', '', '');
}
