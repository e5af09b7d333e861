/** A worker thread's view of a file of accounts. */
import { HttpError } from '../../compiler/exchange/http-error.ts';
import {
	type AccountFile,
	type Accounts,
	parseAccountFile,
} from '../../compiler/modules/directives/basic-auth/account-file.ts';
import { ACCOUNT_CHECK_INTERVAL_MS, type AccountFileAnswer, type AccountFileQuestion } from './account-files.ts';

/** The accounts of one file. All requests that arrive during a check of the file wait for that check. */
export class ThreadAccountFile implements AccountFile {
	readonly #path: string;
	readonly #askMainThread: (question: AccountFileQuestion) => Promise<AccountFileAnswer>;
	#accounts: Accounts | undefined;
	#version = 0;
	/** Time of the last check, by `performance.now()`. */
	#checkedAt = Number.NEGATIVE_INFINITY;
	#pendingCheck: Promise<Accounts> | undefined;

	/** @param askMainThread Asks the main thread for the current version of the file. */
	constructor(path: string, askMainThread: (question: AccountFileQuestion) => Promise<AccountFileAnswer>) {
		this.#path = path;
		this.#askMainThread = askMainThread;
	}

	accounts(): Accounts | Promise<Accounts> {
		if (this.#accounts && performance.now() - this.#checkedAt < ACCOUNT_CHECK_INTERVAL_MS) return this.#accounts;
		this.#pendingCheck ??= this.#checkFile().finally(() => {
			this.#pendingCheck = undefined;
		});
		return this.#pendingCheck;
	}

	async #checkFile(): Promise<Accounts> {
		const { version, bytes } = await this.#askMainThread({ path: this.#path, version: this.#version });
		if (bytes) {
			this.#accounts = parseAccountFile(bytes, this.#path);
			this.#version = version;
		}
		this.#checkedAt = performance.now();
		if (!this.#accounts) throw new HttpError(503, 'The file of accounts cannot be used.');
		return this.#accounts;
	}
}
