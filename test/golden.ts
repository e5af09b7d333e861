/**
 * Golden cases: a folder of data named for what it proves, and the text that must come out, byte for byte.
 * UPDATE=1 writes what came out instead. An expected file that nothing reads is a failure. CASE=part runs only the cases
 * whose names hold one of the parts, which commas separate.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { ROOT } from './harness.ts';

/** True when expected files are to be rewritten. */
export const UPDATING: boolean = process.env.UPDATE === '1';

/** Parts of the names of cases to run; none runs all. */
const WANTED = (process.env.CASE ?? '').split(',').filter(part => part !== '');

/** One case: its folder and its name, `adapt/respond-status`. */
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

	/** A file of the case, or undefined when it has none of that name. */
	file(name: string): string | undefined {
		const file = path.join(this.folder, name);
		if (!existsSync(file)) return undefined;
		this.#read.add(name);
		return readFileSync(file, 'utf8');
	}

	/** The first of these files that the case has; throws when it has none. */
	oneOf(...names: readonly string[]): { name: string; text: string } {
		for (const name of names) {
			const text = this.file(name);
			if (text !== undefined) return { name, text };
		}
		throw new Error(`${this.folder} has none of ${names.join(', ')}`);
	}

	/** Compares with an expected file, or writes it. `undefined` means that there must be no such file. */
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
			assert.not(existsSync(file), `${this.kind}/${this.name}/${name}: nothing of the kind came out`);
			return;
		}
		assert.ok(existsSync(file), `${this.kind}/${this.name}/${name} is missing; what came out:\n${actual}`);
		assert.fixture(actual, readFileSync(file, 'utf8'), `${this.kind}/${this.name}/${name}`);
	}

	/** Fails when the case holds an `expected` file that the test did not compare. */
	close(): void {
		for (const name of readdirSync(this.folder)) {
			if (name.startsWith('expected')) {
				assert.ok(this.#read.has(name), `${this.kind}/${this.name}/${name}: nothing reads this file`);
			}
		}
	}
}

/** The cases of a kind, in lexical order. Throws when there is none: a test that cannot fail is a defect. */
export function goldenCases(kind: string): GoldenCase[] {
	const folder = path.join(ROOT, 'fixtures', kind);
	const names = existsSync(folder)
		? readdirSync(folder, { withFileTypes: true })
				.filter(entry => entry.isDirectory())
				.map(entry => entry.name)
				.filter(name => WANTED.length === 0 || WANTED.some(part => name.includes(part)))
				.sort()
		: [];
	if (names.length === 0 && WANTED.length === 0) throw new Error(`fixtures/${kind} holds no case`);
	return names.map(name => new GoldenCase(kind, name));
}
