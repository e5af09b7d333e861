/** Writes `error_page`, and the header fields that nginx adds to error responses, as `handle_errors`. */
import { quoteText, type Slot, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translateText } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { hasErrorFields, writeFields } from './write-headers.ts';
import { translateOrKeep } from './write-rewrites.ts';

/**
 * The scopes of a server whose error responses differ from the server's own, each with a name. In requests to such a scope, the
 * variable `errors` is set to this name, by which `handle_errors` chooses the rules.
 */
export class ErrorRules {
	readonly #scopesByName = new Map<string, Scope>();
	readonly #entrySlots: Slot[] = [];
	readonly #serverScope: Scope;
	readonly #unusedName: (kind: string) => string;

	constructor(serverScope: Scope, unusedName: (kind: string) => string) {
		this.#serverScope = serverScope;
		this.#unusedName = unusedName;
	}

	/** Returns the name of a scope's rules for error responses; undefined if the server's rules apply. */
	rulesNameOf(scope: Scope): string | undefined {
		const errorPages = scope.directivesIn('error_page');
		const hasServerPages =
			errorPages === this.#serverScope.directivesIn('error_page') ||
			errorPages.length + this.#serverScope.directivesIn('error_page').length === 0;
		const addedFields = scope.directivesIn('add_header');
		if (
			hasServerPages &&
			(addedFields === this.#serverScope.directivesIn('add_header') ||
				!(hasErrorFields(scope) || hasErrorFields(this.#serverScope)))
		)
			return undefined;
		for (const [name, otherScope] of this.#scopesByName) {
			if (otherScope.directivesIn('error_page') === errorPages && otherScope.directivesIn('add_header') === addedFields)
				return name;
		}
		const name = this.#unusedName('place');
		this.#scopesByName.set(name, scope);
		return name;
	}

	/** Records the slot at the start of a location to which the server's rules for error responses apply. */
	noteEntrySlot(slot: Slot): void {
		this.#entrySlots.push(slot);
	}

	/**
	 * If any scope has error rules of its own, adds a line to each recorded slot that makes the server's rules apply again to
	 * requests from other locations.
	 */
	fillEntrySlots(): void {
		if (this.#scopesByName.size > 0) for (const slot of this.#entrySlots) slot.addLine('vars errors ""');
	}

	/** Writes the `handle_errors` blocks of all error rules, including rules that are added during the call. */
	write(cx: ServerContext): void {
		for (const [name, scope] of this.#scopesByName) {
			const head = `when vars errors ${quoteText(name)}`;
			for (const page of scope.directivesIn('error_page')) writeErrorPage(page, cx, head);
			const writeFieldsOnly = (): void => cx.out.writeBlock(head, () => writeBareError(scope, cx));
			if (
				hasErrorFields(scope) ||
				this.#serverScope.directivesIn('error_page').length > 0 ||
				hasErrorFields(this.#serverScope)
			)
				cx.out.writeBlock('handle_errors', writeFieldsOnly);
		}
		for (const page of this.#serverScope.directivesIn('error_page')) writeErrorPage(page, cx, undefined);
		if (hasErrorFields(this.#serverScope))
			cx.out.writeBlock('handle_errors', () => writeBareError(this.#serverScope, cx));
	}
}

function writeBareError(scope: Scope, cx: ServerContext): void {
	writeFields(scope, cx.out, cx.variables, true);
	cx.out.writeLine('respond "" {err.status_code}');
}

function writeErrorPage(errorPage: NginxDirective, cx: ServerContext, head: string | undefined): void {
	const { out } = cx;
	const pageTarget = errorPage.args.at(-1) ?? '';
	const changeAndStatuses = errorPage.args.slice(0, -1);
	const statusChange = changeAndStatuses.find(text => text.startsWith('='));
	const statuses = changeAndStatuses.filter(text => /^[3-5]\d{2}$/.test(text));
	// Only nginx uses the statuses 494 to 499, and errors start at 400.
	const possibleStatuses = statuses.filter(text => Number(text) >= 400 && !/^49[4-9]$/.test(text));
	if (possibleStatuses.length === 0) {
		out.keepAsComment(errorPage, 'such errors do not occur here');
		return;
	}
	const lines = out.capture(() =>
		translateOrKeep(errorPage, out, () => {
			if (/^https?:\/\//.test(pageTarget)) {
				const status = statusChange && /^=3\d\d$/.test(statusChange) ? statusChange.slice(1) : '302';
				out.writeLine(`redir ${quoteText(translateText(pageTarget, cx.variables))} ${status}`);
				return;
			}
			if (statusChange !== '=')
				out.writeBlock('intercept', () =>
					out.writeLine(`replace_status ${statusChange === undefined ? '{err.status_code}' : statusChange.slice(1)}`),
				);
			if (cx.hasInternalLocation) out.writeLine('vars internal "yes"');
			if (pageTarget.startsWith('@')) {
				out.writeLine(`invoke ${cx.routeOf(pageTarget)}`);
				return;
			}
			out.writeBlock('when not method GET HEAD', () => out.writeLine('method GET'));
			out.writeLine(`rewrite ${word(hasVariable(pageTarget) ? translateText(pageTarget, cx.variables) : pageTarget)}`);
			cx.chooseLocation();
		}),
	);
	if (lines.length === 0) return;
	out.writeBlock(`handle_errors ${possibleStatuses.join(' ')}`, () => {
		if (head === undefined) out.append(lines);
		else out.writeBlock(head, () => out.append(lines));
	});
}
