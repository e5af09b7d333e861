/** The state of one page while it is executed, which its functions use. */
import { posix } from 'node:path';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { FileError } from '../../../exchange/leases.ts';
import {
	DEFAULT_EXECUTION_BOUNDS,
	ExecutionBudget,
	type RunDependencies,
	type TemplateRun,
} from '../../templates/run.ts';
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import type { Value } from '../../templates/value.ts';
import { PageData } from './page-data.ts';
import type { TemplatesStepState } from './page-site.ts';
import { allowanceOf, type SubRequestAllowance, type SubResponse } from './sub-request.ts';
import { bufferBody } from './whole-body.ts';

/** Number of bytes per read. A read of this size completes synchronously. */
const PIECE = 64 * 1024;

/** Maximum results of slow work for which a page waits. After each of them, the page is executed again. */
const MAX_WAITS = 50;

/** The error with which slow work failed. */
class Failure {
	readonly error: unknown;

	constructor(error: unknown) {
		this.error = error;
	}
}

/** The state of a page's execution; its functions access it as `run.dependencies.host`. */
export class PageHost implements RunDependencies {
	readonly x: Exchange;
	readonly site: TemplatesStepState;
	readonly budget: ExecutionBudget;
	readonly allowance: SubRequestAllowance;
	/** Responses to requests made by the page, by URI. When the page is executed again, they are reused. */
	readonly answers = new Map<string, SubResponse>();
	/** Results of random and slow functions, in call order, kept for the next execution of the page. */
	readonly #given: (Value | Failure)[] = [];
	#taken = 0;
	#waits = 0;
	#now: number | undefined;
	#root: string | undefined;
	#headers: HeaderList;
	#data: PageData;

	constructor(x: Exchange, site: TemplatesStepState) {
		this.x = x;
		this.site = site;
		this.allowance = allowanceOf(x);
		this.budget = new ExecutionBudget(DEFAULT_EXECUTION_BOUNDS, this.allowance.steps);
		this.#headers = x.response.headers;
		this.#data = this.#fresh();
	}

	get host(): this {
		return this;
	}

	/** Returns the time: the same throughout a page, however often it is executed. */
	now(): number {
		this.#now ??= this.x.now();
		return this.#now;
	}

	once<T extends Value>(make: () => T): T {
		if (this.#taken === this.#given.length) this.#given.push(make());
		return this.#given[this.#taken++] as T;
	}

	/** Returns the result of slow work. Throws Suspension until it is done, or the error with which it failed. */
	later(make: () => Promise<Value>): string {
		if (this.#taken === this.#given.length) {
			if (++this.#waits > MAX_WAITS) throw new FunctionError(`a page waits more than ${MAX_WAITS} times`);
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

	/** Prepares another execution: discards the previous one's changes to the response's fields. */
	restart(): void {
		this.budget.restart();
		this.#taken = 0;
		this.#data = this.#fresh();
	}

	#fresh(): PageData {
		this.#headers = this.x.response.headers.clone();
		return new PageData(this.x, this.site.clientIp, this.#headers, []);
	}

	/** The response's fields as changed by the page. */
	get headers(): HeaderList {
		return this.#headers;
	}

	/** The root folder of the page's files. */
	get root(): string {
		this.#root ??= this.site.root(this.x);
		return this.#root;
	}

	/** Returns the text of a file below the root. Throws FunctionError. */
	readText(run: TemplateRun, file: string): string {
		const path = pageFilePath(file);
		run.budget.spend(50);
		try {
			const opened = this.site.reader.open(this.root, path, false);
			if (opened instanceof Promise) throw new FunctionError(`${file}: the file is not available yet`);
			try {
				run.budget.chargeText(opened.size);
				const bytes = Buffer.alloc(opened.size);
				for (let at = 0; at < opened.size; at += PIECE) {
					const piece = bufferBody(opened.body(at, Math.min(at + PIECE, opened.size), true), PIECE, file);
					if (!(piece instanceof Uint8Array)) throw new FunctionError(`${file}: the file cannot be read immediately`);
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

/** Returns the path below the root for a path written in a page; `..` stops at the root. */
export function pageFilePath(file: string): string {
	if (file.includes('\0')) throw new FunctionError('a file name contains NUL');
	const path = posix.normalize(`/${file}`);
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Returns the state of the page that a function runs in. */
export function pageHostOf(run: TemplateRun): PageHost {
	return run.deps.host as PageHost;
}
