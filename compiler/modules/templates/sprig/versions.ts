/** sprig's functions for semantic versions (semver.org 2.0.0). */
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { objectMethod } from '../time-value.ts';
import type { TemplateObject, Value } from '../value.ts';

const VERSION_PATTERN = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/;
const CONSTRAINT_PATTERN =
	/^(=|==|!=|>|<|>=|=>|<=|=<|~|~>|\^)?\s*v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

class Version implements TemplateObject {
	readonly typeName = '*semver.Version';
	readonly numbers: readonly [bigint, bigint, bigint];
	readonly prerelease: string;
	readonly metadata: string;
	readonly originalText: string;

	constructor(numbers: readonly [bigint, bigint, bigint], prerelease: string, metadata: string, originalText: string) {
		this.numbers = numbers;
		this.prerelease = prerelease;
		this.metadata = metadata;
		this.originalText = originalText;
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
				return objectMethod(name, '', () => this.originalText);
			case 'String':
				return objectMethod(name, '', () => this.text());
			case 'Compare':
				return objectMethod(name, 'any', (other: Value) =>
					BigInt(other instanceof Version ? compareVersions(this, other) : 0),
				);
			case 'Equal':
				return objectMethod(
					name,
					'any',
					(other: Value) => other instanceof Version && compareVersions(this, other) === 0,
				);
			case 'LessThan':
				return objectMethod(
					name,
					'any',
					(other: Value) => other instanceof Version && compareVersions(this, other) < 0,
				);
			case 'GreaterThan':
				return objectMethod(
					name,
					'any',
					(other: Value) => other instanceof Version && compareVersions(this, other) > 0,
				);
			default:
				return undefined;
		}
	}

	text(): string {
		const suffix = `${this.prerelease && `-${this.prerelease}`}${this.metadata && `+${this.metadata}`}`;
		return this.numbers.join('.') + suffix;
	}
}

export const VERSION_FUNCTIONS: FunctionList = {
	semver: defineFunction('string', parseVersion),
	semverCompare: defineFunction('string string', (run, constraint: string, version: string) =>
		satisfiesConstraint(run, constraint, parseVersion(run, version)),
	),
};

function parseVersion(run: TemplateRun, text: string): Version {
	const match = VERSION_PATTERN.exec(text);
	if (!match) return run.fail('Invalid Semantic Version');
	const [, major, minor = '0', patch = '0', prerelease = '', metadata = ''] = match;
	return new Version([BigInt(major!), BigInt(minor), BigInt(patch)], prerelease, metadata, text);
}

function compareVersions(a: Version, b: Version): number {
	for (const i of [0, 1, 2] as const) if (a.numbers[i] !== b.numbers[i]) return a.numbers[i] < b.numbers[i] ? -1 : 1;
	if (a.prerelease === b.prerelease) return 0;
	if (a.prerelease === '' || b.prerelease === '') return a.prerelease === '' ? 1 : -1;
	const leftIdentifiers = a.prerelease.split('.');
	const rightIdentifiers = b.prerelease.split('.');
	for (let i = 0; ; i++) {
		const [x, y] = [leftIdentifiers[i], rightIdentifiers[i]];
		if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? -1 : 1;
		if (x === y) continue;
		const [isNumeric, isOtherNumeric] = [/^\d+$/.test(x), /^\d+$/.test(y)];
		if (isNumeric && isOtherNumeric) return BigInt(x) < BigInt(y) ? -1 : 1;
		if (isNumeric !== isOtherNumeric) return isNumeric ? -1 : 1;
		return x < y ? -1 : 1;
	}
}

/**
 * Reports whether a version satisfies a constraint, which consists of alternatives separated by `||`. Each alternative is a list of
 * comparisons separated by commas or spaces.
 */
function satisfiesConstraint(run: TemplateRun, constraint: string, version: Version): boolean {
	run.budget.chargeText(constraint.length);
	return constraint.split('||').some(alternative =>
		expandHyphenRanges(alternative)
			.replace(/([=<>!~^])\s+/g, '$1')
			.split(/[\s,]+/)
			.filter(Boolean)
			.every(part => satisfiesComparison(run, part, version)),
	);
}

/** Rewrites `1.2 - 1.4` as `>=1.2,<=1.4`. */
function expandHyphenRanges(constraint: string): string {
	const words = constraint.split(/\s+/).filter(Boolean);
	let rewrittenText = '';
	for (let index = 0; index < words.length; index++) {
		const isRange = words[index + 1] === '-' && index + 2 < words.length;
		rewrittenText += isRange ? ` >=${words[index]},<=${words[index + 2]}` : ` ${words[index]}`;
		if (isRange) index += 2;
	}
	return rewrittenText;
}

function satisfiesComparison(run: TemplateRun, comparison: string, version: Version): boolean {
	const match = CONSTRAINT_PATTERN.exec(comparison);
	if (!match) return run.fail(`improper constraint: ${comparison}`);
	const [, operator = '', ...components] = match;
	const numbers = components
		.slice(0, 3)
		.map(text => (text === undefined || /[xX*]/.test(text) ? undefined : BigInt(text)));
	const prerelease = components[3] ?? '';
	// The number of version numbers that the constraint contains, such as 2 for `1.2`. Missing numbers match any number.
	const numberCount = numbers.indexOf(undefined) === -1 ? 3 : numbers.indexOf(undefined);
	const lowestVersion = new Version(
		[numbers[0] ?? 0n, numberCount > 1 ? numbers[1]! : 0n, numberCount > 2 ? numbers[2]! : 0n],
		prerelease,
		'',
		'',
	);
	// A prerelease version matches only a constraint that names a prerelease.
	if (version.prerelease !== '' && prerelease === '') return false;
	const order = compareVersions(version, lowestVersion);
	const isBelowNext = (index: number): boolean =>
		index < 0 || compareVersions(version, nextVersion(lowestVersion, index)) < 0;
	switch (operator) {
		case '>':
			return numberCount === 3 ? order > 0 : !isBelowNext(numberCount - 1);
		case '<':
			return order < 0;
		case '>=':
		case '=>':
			return order >= 0;
		case '<=':
		case '=<':
			return numberCount === 3 ? order <= 0 : isBelowNext(numberCount - 1);
		case '!=':
			return numberCount === 3 ? order !== 0 : order < 0 || !isBelowNext(numberCount - 1);
		case '~':
		case '~>':
			return order >= 0 && isBelowNext(Math.min(numberCount, 2) - 1);
		case '^': {
			const firstNonZeroIndex = lowestVersion.numbers.findIndex(number => number !== 0n);
			return (
				order >= 0 &&
				isBelowNext(firstNonZeroIndex === -1 ? numberCount - 1 : Math.min(firstNonZeroIndex, numberCount - 1))
			);
		}
		default:
			return numberCount === 3 ? order === 0 : order >= 0 && isBelowNext(numberCount - 1);
	}
}

/** Returns the version whose number at an index is one higher, and whose later numbers are 0. */
function nextVersion(version: Version, index: number): Version {
	const numbers = version.numbers.map((number, i) => (i < index ? number : i === index ? number + 1n : 0n));
	return new Version(numbers as unknown as Version['numbers'], '', '', '');
}
