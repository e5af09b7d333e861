/** Writes `error_page`, and the fields that nginx adds to errors, as `handle_errors`. */
import { quoted, type Slot, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translated } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { hasErrorFields, writeFields } from './write-headers.ts';
import { orKeep } from './write-rewrites.ts';

/** The scopes of a server with error rules of their own, by the value that the variable `errors` has in each. */
export class ErrorPlaces {
	readonly #places = new Map<string, Scope>();
	readonly #entries: Slot[] = [];
	readonly #server: Scope;
	readonly #unusedName: (kind: string) => string;

	constructor(server: Scope, unusedName: (kind: string) => string) {
		this.#server = server;
		this.#unusedName = unusedName;
	}

	/** Returns the value of `errors` in a scope; undefined if its errors are answered as in the server. */
	nameOf(scope: Scope): string | undefined {
		const pages = scope.all('error_page');
		const isSame =
			pages === this.#server.all('error_page') || pages.length + this.#server.all('error_page').length === 0;
		const fields = scope.all('add_header');
		if (
			isSame &&
			(fields === this.#server.all('add_header') || !(hasErrorFields(scope) || hasErrorFields(this.#server)))
		)
			return undefined;
		for (const [name, known] of this.#places) {
			if (known.all('error_page') === pages && known.all('add_header') === fields) return name;
		}
		const name = this.#unusedName('place');
		this.#places.set(name, scope);
		return name;
	}

	/** Records the slot at the start of a location that has the server's error rules. */
	noteEntry(slot: Slot): void {
		this.#entries.push(slot);
	}

	/** Adds the line that makes the server's error rules apply again to requests that come from another location. */
	writeEntries(): void {
		if (this.#places.size > 0) for (const slot of this.#entries) slot.line('vars errors ""');
	}

	/** Writes the `handle_errors` of all scopes, including those that are added while it runs. */
	write(cx: ServerContext): void {
		for (const [name, scope] of this.#places) {
			const head = `when vars errors ${quoted(name)}`;
			for (const one of scope.all('error_page')) writePage(one, cx, head);
			const writeFieldsOnly = (): void => cx.out.block(head, () => writeBare(scope, cx));
			if (hasErrorFields(scope) || this.#server.all('error_page').length > 0 || hasErrorFields(this.#server))
				cx.out.block('handle_errors', writeFieldsOnly);
		}
		for (const one of this.#server.all('error_page')) writePage(one, cx, undefined);
		if (hasErrorFields(this.#server)) cx.out.block('handle_errors', () => writeBare(this.#server, cx));
	}
}

function writeBare(scope: Scope, cx: ServerContext): void {
	writeFields(scope, cx.out, cx.variables, true);
	cx.out.line('respond "" {err.status_code}');
}

function writePage(one: NginxDirective, cx: ServerContext, head: string | undefined): void {
	const { out } = cx;
	const target = one.args.at(-1) ?? '';
	const conditions = one.args.slice(0, -1);
	const statusChange = conditions.find(text => text.startsWith('='));
	const statuses = conditions.filter(text => /^[3-5]\d{2}$/.test(text));
	// Only nginx has the statuses 494 to 497 and 499.
	const occurring = statuses.filter(text => Number(text) >= 400 && !/^49[4-9]$/.test(text));
	if (occurring.length === 0) {
		out.keep(one, 'such errors do not occur here');
		return;
	}
	const lines = out.capture(() =>
		orKeep(one, out, () => {
			if (/^https?:\/\//.test(target)) {
				const status = statusChange && /^=3\d\d$/.test(statusChange) ? statusChange.slice(1) : '302';
				out.line(`redir ${quoted(translated(target, cx.variables))} ${status}`);
				return;
			}
			if (statusChange !== '=')
				out.block('intercept', () =>
					out.line(`replace_status ${statusChange === undefined ? '{err.status_code}' : statusChange.slice(1)}`),
				);
			if (cx.hasInternal) out.line('vars internal "yes"');
			if (target.startsWith('@')) {
				out.line(`invoke ${cx.named(target)}`);
				return;
			}
			out.block('when not method GET HEAD', () => out.line('method GET'));
			out.line(`rewrite ${word(hasVariable(target) ? translated(target, cx.variables) : target)}`);
			cx.chooseLocation();
		}),
	);
	if (lines.length === 0) return;
	out.block(`handle_errors ${occurring.join(' ')}`, () => {
		if (head === undefined) out.append(lines);
		else out.block(head, () => out.append(lines));
	});
}
