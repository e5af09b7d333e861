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
import { readWholeBody } from './whole-body.ts';

/** Number of bytes per read. The file reader answers reads of at most this size immediately. */
const MAX_READ_BYTES = 64 * 1024;

/** Maximum number of times that a page may wait for slow work. After each wait, the page is executed again from its beginning. */
const MAX_PAGE_WAITS = 50;

/** Marks a call of a slow function that failed; holds its error. */
class FailedWork {
	readonly error: unknown;

	constructor(error: unknown) {
		this.error = error;
	}
}

/** The state of one page, which is executed once or repeatedly. Functions get it from {@link pageHostOf}. */
export class PageHost implements RunDependencies {
	readonly x: Exchange;
	readonly stepState: TemplatesStepState;
	readonly budget: ExecutionBudget;
	readonly allowance: SubRequestAllowance;
	/** Responses to requests made by the page, by URI. They are reused when the page is executed again. */
	readonly responsesByUri = new Map<string, SubResponse>();
	/** Results of random and slow functions in the order of calls. They are reused when the page is executed again. */
	readonly #callResults: (Value | FailedWork)[] = [];
	#usedResultCount = 0;
	#waitCount = 0;
	#nowMs: number | undefined;
	#root: string | undefined;
	#headers: HeaderList;
	#data: PageData;

	constructor(x: Exchange, stepState: TemplatesStepState) {
		this.x = x;
		this.stepState = stepState;
		this.allowance = allowanceOf(x);
		this.budget = new ExecutionBudget(DEFAULT_EXECUTION_BOUNDS, this.allowance.steps);
		this.#headers = x.response.headers;
		this.#data = this.#createData();
	}

	get hostState(): this {
		return this;
	}

	/** Returns the current time, which is the same throughout a page, even if it is executed repeatedly. */
	now(): number {
		this.#nowMs ??= this.x.now();
		return this.#nowMs;
	}

	once<T extends Value>(compute: () => T): T {
		if (this.#usedResultCount === this.#callResults.length) this.#callResults.push(compute());
		return this.#callResults[this.#usedResultCount++] as T;
	}

	/**
	 * Returns the result of slow work, which is started at the first call. Throws Suspension until the work is done; throws the work's
	 * error if it has failed.
	 */
	runSlowWork(startWork: () => Promise<Value>): string {
		if (this.#usedResultCount === this.#callResults.length) {
			if (++this.#waitCount > MAX_PAGE_WAITS) throw new FunctionError(`a page waits more than ${MAX_PAGE_WAITS} times`);
			const completion = startWork().then(
				value => this.#callResults.push(value),
				error => this.#callResults.push(new FailedWork(error)),
			);
			throw new Suspension(completion);
		}
		const callResult = this.#callResults[this.#usedResultCount++];
		if (!(callResult instanceof FailedWork)) return callResult as string;
		const { error } = callResult;
		throw error instanceof HttpError
			? error
			: new FunctionError(error instanceof Error ? error.message : String(error));
	}

	regexp(source: string): RegExp {
		return this.stepState.patternCache.get(source);
	}

	get data(): PageData {
		return this.#data;
	}

	/** Prepares another execution of the page. Discards changes that the previous execution made to the response's fields. */
	restart(): void {
		this.budget.restart();
		this.#usedResultCount = 0;
		this.#data = this.#createData();
	}

	#createData(): PageData {
		this.#headers = this.x.response.headers.clone();
		return new PageData(this.x, this.stepState.clientIp, this.#headers, []);
	}

	/** The response's fields as changed by the page. */
	get headers(): HeaderList {
		return this.#headers;
	}

	/** The root folder of the page's files. */
	get root(): string {
		this.#root ??= this.stepState.rootOf(this.x);
		return this.#root;
	}

	/** Returns the text of a file below the root. Throws FunctionError if it cannot be read. */
	readText(run: TemplateRun, file: string): string {
		const path = pageFilePath(file);
		run.budget.spendSteps(50);
		try {
			const openFile = this.stepState.reader.open(this.root, path, false);
			if (openFile instanceof Promise) throw new FunctionError(`${file}: the file is not available yet`);
			try {
				run.budget.chargeText(openFile.size);
				const fileBytes = Buffer.alloc(openFile.size);
				for (let offset = 0; offset < openFile.size; offset += MAX_READ_BYTES) {
					const piece = readWholeBody(
						openFile.body(offset, Math.min(offset + MAX_READ_BYTES, openFile.size), true),
						MAX_READ_BYTES,
						file,
					);
					if (!(piece instanceof Uint8Array)) throw new FunctionError(`${file}: the file cannot be read immediately`);
					fileBytes.set(piece, offset);
				}
				return fileBytes.toString('utf8');
			} finally {
				openFile.close();
			}
		} catch (error) {
			if (error instanceof FileError) throw new FunctionError(`${file}: ${error.message}`);
			throw error;
		}
	}
}

/** Converts a path that is written in a page to a path below the root. `..` does not lead above the root. */
export function pageFilePath(file: string): string {
	if (file.includes('\0')) throw new FunctionError('a file name contains NUL');
	const path = posix.normalize(`/${file}`);
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Returns the state of the page that is being executed. */
export function pageHostOf(run: TemplateRun): PageHost {
	return run.deps.hostState as PageHost;
}
