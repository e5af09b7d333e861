/** One page while it is executed: what its functions reach. */
import { posix } from 'node:path';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { FileError } from '../../../exchange/leases.ts';
import { Budget, DEFAULT_BOUNDS, type Run, type Surroundings } from '../../templates/run.ts';
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import type { Value } from '../../templates/value.ts';
import { PageData } from './page-data.ts';
import type { PageSite } from './page-site.ts';
import { type Allowance, allowanceOf, type SubResponse } from './sub-request.ts';
import { wholeBody } from './whole-body.ts';

/** Bytes that are read at once, so that reading waits for nothing. */
const PIECE = 64 * 1024;

/** Results of slow work that one page may wait for: it is executed again for each. */
const MOST_WAITS = 50;

/** Why slow work gave nothing. */
class Failure {
	readonly error: unknown;

	constructor(error: unknown) {
		this.error = error;
	}
}

/** What functions of a page find behind `run.dependencies.host`. */
export class PageHost implements Surroundings {
	readonly x: Exchange;
	readonly site: PageSite;
	readonly budget: Budget;
	readonly allowance: Allowance;
	/** Answers to requests that the page made, by URI: a repetition of the page finds them here. */
	readonly answers = new Map<string, SubResponse>();
	/** What chance and slow work gave, in the order of the calls; and how many of them this execution has come to. */
	readonly #given: (Value | Failure)[] = [];
	#taken = 0;
	#waits = 0;
	#now: number | undefined;
	#root: string | undefined;
	#headers: HeaderList;
	#data: PageData;

	constructor(x: Exchange, site: PageSite) {
		this.x = x;
		this.site = site;
		this.allowance = allowanceOf(x);
		this.budget = new Budget(DEFAULT_BOUNDS, this.allowance.steps);
		this.#headers = x.response.headers;
		this.#data = this.#fresh();
	}

	get host(): this {
		return this;
	}

	/** One page, one time, however often it is executed. */
	now(): number {
		this.#now ??= this.x.now();
		return this.#now;
	}

	once<T extends Value>(make: () => T): T {
		if (this.#taken === this.#given.length) this.#given.push(make());
		return this.#given[this.#taken++] as T;
	}

	/** What slow work gives. Throws Suspension until it is done, then what it failed with. */
	later(make: () => Promise<Value>): string {
		if (this.#taken === this.#given.length) {
			if (++this.#waits > MOST_WAITS) throw new FunctionError(`a page waits more than ${MOST_WAITS} times`);
			const done = make().then(
				value => this.#given.push(value),
				error => this.#given.push(new Failure(error)),
			);
			throw new Suspension(done);
		}
		const given = this.#given[this.#taken++];
		if (!(given instanceof Failure)) return given as string;
		const { error } = given;
		throw error instanceof HttpError
			? error
			: new FunctionError(error instanceof Error ? error.message : String(error));
	}

	regexp(source: string): RegExp {
		return this.site.patterns.get(source);
	}

	get data(): PageData {
		return this.#data;
	}

	/** Before another attempt: what the last one did to the response's fields is forgotten. */
	restart(): void {
		this.budget.restart();
		this.#taken = 0;
		this.#data = this.#fresh();
	}

	#fresh(): PageData {
		this.#headers = this.x.response.headers.clone();
		return new PageData(this.x, this.site.clientIp, this.#headers, []);
	}

	/** Fields of the response as the page has left them. */
	get headers(): HeaderList {
		return this.#headers;
	}

	/** Folder that the page's files are below. */
	get root(): string {
		this.#root ??= this.site.root(this.x);
		return this.#root;
	}

	/** The text of a file below the root. Throws FunctionError. */
	readText(run: Run, file: string): string {
		const path = filePath(file);
		run.budget.spend(50);
		try {
			const opened = this.site.reader.open(this.root, path, false);
			if (opened instanceof Promise) throw new FunctionError(`${file}: the file is not here yet`);
			try {
				run.budget.text(opened.size);
				const bytes = Buffer.alloc(opened.size);
				for (let at = 0; at < opened.size; at += PIECE) {
					const piece = wholeBody(opened.body(at, Math.min(at + PIECE, opened.size), true), PIECE, file);
					if (!(piece instanceof Uint8Array)) throw new FunctionError(`${file}: the file cannot be read at once`);
					bytes.set(piece, at);
				}
				return bytes.toString('utf8');
			} finally {
				opened.close();
			}
		} catch (error) {
			if (error instanceof FileError) throw new FunctionError(`${file}: ${error.message}`);
			throw error;
		}
	}
}

/** A path below the root from what a page wrote: `..` stops at the root. */
export function filePath(file: string): string {
	if (file.includes('\0')) throw new FunctionError('a file name holds NUL');
	const path = posix.normalize(`/${file}`);
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The page of a run. */
export function hostOf(run: Run): PageHost {
	return run.deps.host as PageHost;
}
