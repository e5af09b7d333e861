/**
 * Golden cases: folders of data with the expected output, compared byte for byte. Each case is named for what it proves. UPDATE=1
 * writes the actual output to the expected files. An expected file that no test reads is a failure. CASE=part runs only the cases
 * whose names contain one of the parts, which are separated by commas.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { ROOT } from './harness.ts';

/** True if expected files are rewritten instead of compared. */
export const UPDATING: boolean = process.env.UPDATE === '1';

/** Parts of the names of cases to run; an empty list runs all. */
const CASE_NAME_PARTS = (process.env.CASE ?? '').split(',').filter(part => part !== '');

/** A case: its folder and its name, such as `adapt/respond-status`. */
export class GoldenCase {
	readonly kind: string;
	readonly name: string;
	readonly folder: string;
	readonly #read = new Set<string>();

	constructor(kind: string, name: string) {
		this.kind = kind;
		this.name = name;
		this.folder = path.join(ROOT, 'fixtures', kind, name);
	}

	/** Returns a file of the case, or undefined if it does not exist. */
	file(name: string): string | undefined {
		const file = path.join(this.folder, name);
		if (!existsSync(file)) return undefined;
		this.#read.add(name);
		return readFileSync(file, 'utf8');
	}

	/** Returns the first of the named files that exists. Throws if none exists. */
	oneOf(...names: readonly string[]): { name: string; text: string } {
		for (const name of names) {
			const text = this.file(name);
			if (text !== undefined) return { name, text };
		}
		throw new Error(`${this.folder} has none of ${names.join(', ')}`);
	}

	/**
	 * Compares the actual content with an expected file, or rewrites the file. If `actual` is undefined, the file must not exist.
	 */
	expect(name: string, actual: string | undefined): void {
		const file = path.join(this.folder, name);
		this.#read.add(name);
		if (UPDATING) {
			if (actual === undefined) rmSync(file, { force: true });
			else {
				mkdirSync(this.folder, { recursive: true });
				writeFileSync(file, actual);
			}
			return;
		}
		if (actual === undefined) {
			assert.not(existsSync(file), `${this.kind}/${this.name}/${name}: there was no such output`);
			return;
		}
		assert.ok(existsSync(file), `${this.kind}/${this.name}/${name} is missing; the actual output:\n${actual}`);
		assert.fixture(actual, readFileSync(file, 'utf8'), `${this.kind}/${this.name}/${name}`);
	}

	/** Fails if the case has an `expected` file that the test did not compare. */
	close(): void {
		for (const name of readdirSync(this.folder)) {
			if (name.startsWith('expected')) {
				assert.ok(this.#read.has(name), `${this.kind}/${this.name}/${name}: no test reads this file`);
			}
		}
	}
}

/** Returns the cases of a kind in lexical order. Throws if there are none, because a test without cases could not fail. */
export function goldenCases(kind: string): GoldenCase[] {
	const folder = path.join(ROOT, 'fixtures', kind);
	const names = existsSync(folder)
		? readdirSync(folder, { withFileTypes: true })
				.filter(entry => entry.isDirectory())
				.map(entry => entry.name)
				.filter(name => CASE_NAME_PARTS.length === 0 || CASE_NAME_PARTS.some(part => name.includes(part)))
				.sort()
		: [];
	if (names.length === 0 && CASE_NAME_PARTS.length === 0) throw new Error(`fixtures/${kind} holds no case`);
	return names.map(name => new GoldenCase(kind, name));
}
