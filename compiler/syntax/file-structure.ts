/** The top level of a configuration: options, snippets, named routes, sites and the blocks specific to a Configfile. */
import type { Diagnostic, Fix } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SourceSpan, wholeLinesSpan } from '../source/source.ts';
import type { Block, ConfigTree, NamedBlock, SiteBlock, Word } from './ast.ts';
import { type Constant, Constants } from './constants.ts';
import { expandWords } from './expand-words.ts';
import type { Expander } from './expander.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, type Snippet, spanIn } from './frame.ts';
import type { ImportedLines, Importer } from './importer.ts';
import { lineShapes, type ParsedBlock, type ParsedLine, type ParsedWord } from './parsed-file.ts';
import { SiteAddresses } from './site-head.ts';
import { defineSnippet, isSnippetHead } from './snippet-definition.ts';
import { closeAfterWords, structureMistake, syntaxError } from './structure-mistake.ts';
import type { TextPiece } from './text-piece.ts';

const namedRoute = /^&\((.*)\)$/s;

/** The head of a block that waits for its `{` on the next line, or for the address after its comma. */
interface Waiting {
	readonly kind: 'site' | 'block' | 'misplaced';
	readonly line: ParsedLine;
	readonly frame: Frame;
}

/** A site of the tree (`block`), or a piece of source text that yields one when parsed; both if the piece has been parsed. */
export interface SiteEntry {
	readonly block: SiteBlock | undefined;
	readonly piece: TextPiece | undefined;
}

/** Names defined so far at the top level. */
export interface DefinedNames {
	readonly snippets: ReadonlyMap<string, Snippet>;
	readonly constants: Constants;
}

/** Remembers the results of pieces of source text, so that they need not be parsed again. */
export interface PieceMemory {
	/** Reports whether the piece would produce the same site again. If so, marks the definitions that the site uses as used. */
	recall(piece: TextPiece, names: DefinedNames): boolean;
	/** Called before a piece is parsed. */
	begins(piece: TextPiece): void;
	/**
	 * Receives the one site that the piece produced, or undefined if it produced anything else. `lasting` is
	 * true if the result can be reused: the piece caused no structural diagnostic, and will cause none at the end of the file.
	 */
	ends(site: SiteBlock | undefined, lasting: boolean, names: DefinedNames): void;
	/** Called for lines that do not belong to a piece. */
	looseLines(): void;
}

/** Receives top-level lines one by one, including imported ones, and sorts them into the tree. */
export class FileStructure {
	readonly #dialect: Dialect;
	readonly #report: ExpansionReport;
	readonly #expander: Expander;
	readonly #importer: Importer;
	readonly #constants = new Constants(undefined);
	readonly #siteConstants: Constants[] = [];
	#options: Block | undefined;
	readonly #routes: NamedBlock[] = [];
	readonly #upstreams: NamedBlock[] = [];
	readonly #tests: NamedBlock[] = [];
	readonly #sites: SiteEntry[] = [];
	readonly #memory: PieceMemory | undefined;
	readonly #addresses: SiteAddresses;
	#waiting: Waiting | undefined;
	/** The site that was opened without `{`. It contains all lines up to the end of the file. */
	#open: { addresses: readonly Word[]; lines: ParsedLine[]; constants: Constants; span: SourceSpan } | undefined;
	/** True once a block other than a snippet has been seen: global options would come too late. */
	#begun = false;
	/** True if the previous line was a directive outside of any site. Directives that follow it are part of the same mistake. */
	#adrift = false;

	constructor(
		report: ExpansionReport,
		expander: Expander,
		importer: Importer,
		directives: ReadonlySet<string>,
		memory?: PieceMemory,
	) {
		this.#dialect = report.dialect;
		this.#report = report;
		this.#expander = expander;
		this.#importer = importer;
		this.#addresses = new SiteAddresses(report, directives);
		this.#memory = memory;
	}

	/** Adds the contents of a file. */
	addFile({ lines, pieces, frame }: ImportedLines): void {
		if (pieces) {
			this.#pieces(pieces, frame);
			return;
		}
		this.#memory?.looseLines();
		this.add(lines, frame);
	}

	/** Adds the pieces of one file. */
	#pieces(pieces: readonly TextPiece[], frame: Frame): void {
		const names = { snippets: this.#importer.snippets, constants: this.#constants };
		for (const piece of pieces) {
			if (this.#report.exhausted) return;
			if (this.atRest && (piece.sole || this.#memory?.recall(piece, names))) {
				this.#begun = true;
				this.#adrift = false;
				this.#sites.push({ block: undefined, piece });
				continue;
			}
			this.#memory?.begins(piece);
			const { lines, source, plain, mistaken } = this.#importer.read(piece);
			const before = this.size;
			const sites = this.#sites.length;
			const constants = this.#siteConstants.length;
			this.add(lines, { ...frame, source });
			piece.release();
			const made = this.#sites[sites];
			const site = plain && this.atRest && made && this.size === before + 1 ? made.block : undefined;
			if (site) this.#sites[sites] = { block: site, piece };
			const lasting = !mistaken && this.#siteConstants.slice(constants).every(own => own.unused().length === 0);
			this.#memory?.ends(site, lasting, names);
		}
	}

	/** Number of definitions so far, including sites. */
	get size(): number {
		const defined = this.#sites.length + this.#routes.length + this.#upstreams.length + this.#tests.length;
		return defined + this.#importer.snippets.size + this.#constants.size + (this.#options ? 1 : 0);
	}

	/** True between blocks, where no earlier line affects the meaning of the next one. */
	get atRest(): boolean {
		return !this.#open && !this.#waiting && !this.#addresses.started;
	}

	get sites(): readonly SiteEntry[] {
		return this.#sites;
	}

	/** Removes the sites added so far. */
	forgetSites(): void {
		this.#sites.length = 0;
		this.#siteConstants.length = 0;
	}

	/** Adds lines in file order. */
	add(lines: readonly ParsedLine[], frame: Frame): void {
		for (const line of lines) {
			if (this.#report.exhausted) return;
			this.#line(line, frame);
		}
	}

	/** Ends the file and completes or reports anything unfinished. `unused`: whether to report unused names. */
	finish(unused: boolean = this.#dialect === 'configfile'): ConfigTree {
		this.#settle();
		this.#closeOpenSite();
		if (unused) this.#unused();
		return {
			options: this.#options,
			namedRoutes: this.#routes,
			upstreams: this.#upstreams,
			tests: this.#tests,
			sites: this.#sites.flatMap(({ block }) => block ?? []),
			files: this.#importer.files,
		};
	}

	#line(line: ParsedLine, frame: Frame): void {
		const first = line.words[0];
		const word = first?.quote === 'none' ? first.text : undefined;
		if (line.shape & lineShapes.afterOpenSite) {
			this.#settle();
			this.#closeOpenSite();
		}
		if (this.#open && !this.#leavesOpenSite(line, word)) {
			this.#expander.lineInto(this.#open.lines, line, frame, this.#open.constants, 'site', 1);
			this.#open.span = { ...this.#open.span, end: Math.max(this.#open.span.end, this.#endIn(line, frame)) };
			return;
		}
		if (!first) {
			this.#bareBlock(line, frame);
			return;
		}
		const placed = line.live ? this.#expander.placedLines(line, frame) : undefined;
		if (placed) {
			this.add(placed, { ...frame, hasOwnSpans: true, imported: false });
			return;
		}
		if (word === 'import' || (word === 'use' && this.#dialect === 'configfile')) {
			if (this.#waiting?.kind === 'block') this.#settle(line, frame);
			for (const part of this.#importer.imports(line, frame, this.#constants, this.#expander, 1, true)) {
				this.addFile(part);
			}
			return;
		}
		if (this.#waiting) {
			if (this.#waiting.kind === 'site' && this.#addresses.expectsMore) {
				this.#site(line, frame);
				return;
			}
			this.#settle(line, frame);
			if (this.#open) {
				this.#line(line, frame);
				return;
			}
		}
		this.#head(line, first, frame);
	}

	/** Reports whether a line ends a site that has no braces. Keywords of the language do, because they are never directives. */
	#leavesOpenSite(line: ParsedLine, word: string | undefined): boolean {
		if (this.#dialect !== 'configfile' || !line.block) return false;
		return word === 'test' || (word !== undefined && isSnippetHead(word));
	}

	#endIn(line: ParsedLine, frame: Frame): number {
		return frame.source === this.#open!.span.source ? line.span.end : 0;
	}

	#head(line: ParsedLine, first: ParsedWord, frame: Frame): void {
		const { text, quote } = first;
		if (quote === 'none' && isSnippetHead(text)) {
			this.#block(line, frame);
		} else if (quote === 'none' && namedRoute.test(text) && line.words.length === 1) this.#block(line, frame);
		else if (this.#dialect === 'configfile' && quote === 'none' && text === 'let') {
			this.#expander.constant(line, frame, this.#constants);
		} else if (this.#dialect === 'configfile' && quote === 'none' && (text === 'upstream' || text === 'test')) {
			this.#block(line, frame);
		} else if (this.#dialect === 'configfile' && quote === 'none' && text === 'else') {
			this.#elseAlone(line, frame);
		} else this.#site(line, frame);
	}

	/** Adds a named block of any kind. Without its `{`, the block waits for one line. */
	#block(line: ParsedLine, frame: Frame): void {
		this.#adrift = false;
		if (!line.block) {
			this.#waiting = { kind: 'block', line, frame };
			return;
		}
		this.#noAlternative(line, frame);
		const text = line.words[0]!.text;
		const route = namedRoute.exec(text);
		if (route) this.#route(line, line.block, route[1]!, frame);
		else if (text === 'upstream' || text === 'test') this.#named(line, line.block, text, frame);
		else defineSnippet(line, line.block, frame, this.#importer.snippets, this.#constants, this.#report);
	}

	#route(line: ParsedLine, block: ParsedBlock, name: string, frame: Frame): void {
		this.#begun = true;
		const word: Word = { text: name, quote: 'none', span: spanIn(frame, line.words[0]!.span) };
		const before = this.#routes.find(route => route.name.text === name);
		if (before) {
			this.#problem('route/defined-twice', word.span, `cannot have duplicate named_routes: ${name}`, {
				label: 'defined again',
				related: [{ span: before.name.span, message: 'first defined here' }],
			});
		}
		const lines = this.#expander.lines(block.lines, frame, new Constants(this.#constants), 'nested', 2);
		if (!before) this.#routes.push({ name: word, lines, span: spanIn(frame, line.span) });
	}

	/** Adds `upstream NAME { … }` or `test "NAME" { … }`. */
	#named(line: ParsedLine, block: ParsedBlock, kind: 'upstream' | 'test', frame: Frame): void {
		this.#begun = true;
		const scope = { frame, constants: this.#constants, report: this.#report };
		const [keyword, name, ...rest] = expandWords(line.words, scope);
		if (line.shape & lineShapes.closeAfterWords) this.#closeAfterWords(block, frame);
		if (!name || name.text === '') {
			this.#problem(
				`${kind}/no-name`,
				keyword!.span,
				`wrong argument count or unexpected line ending after '${kind}'`,
				{
					label: 'a name is missing',
					hint: kind === 'test' ? 'Write `test "what it shows" { … }`.' : 'Write `upstream NAME { … }`.',
				},
			);
		} else if (rest.length > 0) {
			this.#problem(`${kind}/too-many-words`, rest[0]!.span, `\`${kind}\` takes only one name`, {
				hint: kind === 'test' ? 'Put the name in quotes.' : 'A name is one word.',
			});
		}
		const lines = this.#expander.lines(block.lines, frame, this.#constants, 'nested', 2);
		const named = { name: name ?? keyword!, lines, span: spanIn(frame, line.span) };
		if (name) (kind === 'test' ? this.#tests : this.#upstreams).push(named);
	}

	#bareBlock(line: ParsedLine, frame: Frame): void {
		const waiting = this.#waiting;
		if (waiting) {
			this.#waiting = undefined;
			if (waiting.kind === 'block') {
				this.#block({ ...waiting.line, block: line.block, shape: line.shape }, waiting.frame);
			} else if (waiting.kind === 'site') this.#endSite(line, frame);
			return;
		}
		if (this.#addresses.started) this.#endSite(line, frame);
		else this.#globalOptions(line, line.block!, frame);
	}

	#globalOptions(line: ParsedLine, block: ParsedBlock, frame: Frame): void {
		this.#adrift = false;
		if (line.shape & lineShapes.closeAfterWords) this.#closeAfterWords(block, frame);
		if (this.#begun) {
			const message = 'server block without any key is global configuration, and if used, it must be first';
			const hint = this.#options
				? 'Put these options into the block at the top of the file.'
				: 'Move it to the top of the file, or write an address before `{`.';
			this.#problem('syntax/options-not-first', spanIn(frame, block.open), message, { label: 'has no address', hint });
			return;
		}
		this.#begun = true;
		this.#options = this.#expander.block(block, frame, this.#constants, 1);
	}

	#site(line: ParsedLine, frame: Frame): void {
		const words = expandWords(line.words, { frame, constants: this.#constants, report: this.#report });
		const taken = this.#addresses.take(words, this.#adrift);
		if (taken === 'directive') {
			this.#adrift = true;
			this.#waiting = line.block ? undefined : { kind: 'misplaced', line, frame };
			return;
		}
		this.#adrift = false;
		this.#waiting = undefined;
		if (line.block) this.#endSite(line, frame);
		else this.#waiting = { kind: 'site', line, frame };
	}

	/** Completes the addresses of a site. `line` contains the site's block. */
	#endSite(line: ParsedLine, frame: Frame): void {
		this.#adrift = false;
		this.#begun = true;
		this.#noAlternative(line, frame);
		const block = line.block!;
		const open = spanIn(frame, block.open);
		const { words, refused } = this.#addresses.end(open);
		if (line.shape & lineShapes.closeAfterWords) this.#closeAfterWords(block, frame);
		const constants = this.#constantsOfSite();
		const lines = this.#expander.lines(block.lines, frame, constants, 'site', 2);
		if (words.length === 0) {
			if (refused) return;
			const message = 'server block without any key is global configuration, and if used, it must be first';
			this.#problem('syntax/options-not-first', open, message, { label: 'has no address' });
			return;
		}
		const begin = words[0]!.span;
		const end = spanIn(frame, line.span).end;
		const span = { ...begin, end: Math.max(begin.end, end) };
		this.#addSite({ addresses: words, lines, braces: true, span });
	}

	/**
	 * Handles a head that is followed by neither a block nor another address: it begins a site that has no braces, or its block is
	 * missing.
	 */
	#settle(next?: ParsedLine, frame?: Frame): void {
		const waiting = this.#waiting;
		this.#waiting = undefined;
		if (waiting?.kind === 'block') this.#missingBlock(waiting, next, frame ?? waiting.frame);
		if (waiting?.kind !== 'site') return;
		const { words } = this.#addresses.end(undefined);
		this.#begun = true;
		if (words.length === 0) return;
		const span = { ...words[0]!.span, end: words[words.length - 1]!.span.end };
		this.#open = {
			addresses: words,
			lines: [],
			constants: this.#constantsOfSite(),
			span: { ...span, end: Math.max(span.start, span.end) },
		};
	}

	#missingBlock({ line, frame }: Waiting, next: ParsedLine | undefined, nextFrame: Frame): void {
		const span = spanIn(frame, line.words[0]!.span);
		const [head] = line.words;
		if (frame.imported && next?.words[0]?.text === 'import' && isSnippetHead(head!.text)) {
			const name = this.#dialect === 'compatfile' ? 'Compatfile' : 'Configfile';
			const message = `global options block must appear before import directives; move the global options block to the top of the ${name}`;
			this.#problem('syntax/options-after-import', span, message, {});
			return;
		}
		const token = next?.words[0] ?? head!;
		const message = `syntax error: unexpected token '${token.text}', expecting '{'`;
		this.#problem('syntax/block-expected', span, message, {
			// As in the compatible server, the message refers to the place of the token.
			...(this.#dialect === 'compatfile' && {
				message: syntaxError(token.text, '{', spanIn(nextFrame, token.span)),
			}),
			label: 'needs a block',
			hint: `Write \`${head!.text} { … }\`.`,
		});
	}

	#closeOpenSite(): void {
		if (!this.#open) return;
		const { addresses, lines, span } = this.#open;
		this.#addSite({ addresses, lines, braces: false, span });
		this.#open = undefined;
	}

	#addSite(block: SiteBlock): void {
		this.#sites.push({ block, piece: undefined });
	}

	#constantsOfSite(): Constants {
		const constants = new Constants(this.#constants);
		this.#siteConstants.push(constants);
		return constants;
	}

	#noAlternative(line: ParsedLine, frame: Frame): void {
		if (line.alternative) this.#elseAlone(line.alternative, frame);
	}

	#elseAlone(line: ParsedLine, frame: Frame): void {
		const message = '`else` is allowed only after a `when` inside a site';
		this.#problem('syntax/else-alone', spanIn(frame, line.words[0]!.span), message, {
			label: 'no `when` before this',
		});
	}

	#closeAfterWords(block: ParsedBlock, frame: Frame): void {
		this.#report.report(closeAfterWords(spanIn(frame, block.close), this.#dialect));
	}

	#problem(code: string, span: SourceSpan, message: string, more: Partial<Diagnostic>): void {
		this.#report.report(structureMistake(this.#dialect, code, span, message, more));
	}

	/** Warns about unused names in the main file. Does nothing after an error, because the error may have hidden a use. */
	#unused(): void {
		if (this.#report.failed) return;
		for (const snippet of this.#importer.snippets.values()) {
			if (snippet.local && !snippet.used)
				this.#notUsed('snippet/unused', snippet.word, `The snippet \`${snippet.name}\``);
		}
		for (const constants of [this.#constants, ...this.#siteConstants]) {
			for (const constant of constants.unused()) {
				this.#notUsed('let/unused', constant.name, `The constant \`${constant.name.text}\``, removal(constant));
			}
		}
	}

	#notUsed(code: string, word: Word, what: string, fix?: Fix): void {
		this.#report.report({
			code,
			severity: 'warning',
			message: `${what} is never used.`,
			span: word.span,
			hint: 'Use it or remove it.',
			fix,
		});
	}
}

/** Returns the fix that removes the line of a constant; undefined if something else is on its lines. */
function removal({ name, values }: Constant): Fix | undefined {
	const { source, start } = name.span;
	const from = source.text.lastIndexOf('\n', start - 1) + 1;
	const end = values.at(-1)?.span.end ?? name.span.end;
	if (!/^[ \t]*let[ \t]+$/.test(source.text.slice(from, start))) return undefined;
	if (!/^[ \t\r]*(?:\n|$)/.test(source.text.slice(end))) return undefined;
	return { safety: 'safe', edits: [{ span: wholeLinesSpan({ source, start: from, end }), text: '' }] };
}
