/** The top level of a configuration: options, snippets, named routes, sites and the blocks that only a Configfile has. */
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
import { misplacedCloseMistake, structureMistake, syntaxError } from './structure-mistake.ts';
import type { TextPiece } from './text-piece.ts';

const namedRouteHead = /^&\((.*)\)$/s;

/** The head of a block whose `{` has not been read yet, because it is on the next line or after further lines of addresses. */
interface PendingHead {
	readonly kind: 'site' | 'block' | 'misplaced';
	readonly line: ParsedLine;
	readonly frame: Frame;
}

/** A site: its `block`, or the `piece` of text from which it can be parsed, or both if the piece has been parsed. */
export interface SiteEntry {
	readonly block: SiteBlock | undefined;
	readonly piece: TextPiece | undefined;
}

/** The names that have been defined so far at the top level. */
export interface DefinedNames {
	readonly snippets: ReadonlyMap<string, Snippet>;
	readonly constants: Constants;
}

/** Remembers the results of pieces of text, so that unchanged pieces need not be parsed again. */
export interface PieceMemory {
	/** Reports whether a piece would produce the same site again. If so, marks the definitions that the site uses as used. */
	recall(piece: TextPiece, names: DefinedNames): boolean;
	/** Called before a piece is parsed. */
	onPieceBegin(piece: TextPiece): void;
	/**
	 * Called after a piece has been parsed, with the only site that it produced; undefined if it produced anything else. `reusable`
	 * is true if the piece caused no structural diagnostic and will cause none at the end of the file.
	 */
	onPieceEnd(site: SiteBlock | undefined, reusable: boolean, names: DefinedNames): void;
	/** Called for lines that are not part of a piece. */
	onLooseLines(): void;
}

/** Receives the top-level lines of all files in order, and assembles the tree from them. */
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
	readonly #pieceMemory: PieceMemory | undefined;
	readonly #addresses: SiteAddresses;
	#pendingHead: PendingHead | undefined;
	/** The site that was opened without `{`, to which all lines up to the end of the file belong; undefined if there is none. */
	#openSite: { addresses: readonly Word[]; lines: ParsedLine[]; constants: Constants; span: SourceSpan } | undefined;
	/** True if a block other than a snippet has been read. Global options are not allowed after it. */
	#hasBlocks = false;
	/** True if the previous line was a directive outside of a site. Of several such lines in a row, only the first is reported. */
	#afterStrayDirective = false;

	constructor(
		report: ExpansionReport,
		expander: Expander,
		importer: Importer,
		directives: ReadonlySet<string>,
		pieceMemory?: PieceMemory,
	) {
		this.#dialect = report.dialect;
		this.#report = report;
		this.#expander = expander;
		this.#importer = importer;
		this.#addresses = new SiteAddresses(report, directives);
		this.#pieceMemory = pieceMemory;
	}

	addFile({ lines, pieces, frame }: ImportedLines): void {
		if (pieces) {
			this.#addPieces(pieces, frame);
			return;
		}
		this.#pieceMemory?.onLooseLines();
		this.addLines(lines, frame);
	}

	#addPieces(pieces: readonly TextPiece[], frame: Frame): void {
		const names = { snippets: this.#importer.snippets, constants: this.#constants };
		for (const piece of pieces) {
			if (this.#report.isExhausted) return;
			if (this.isBetweenBlocks && (piece.isIndependentSite || this.#pieceMemory?.recall(piece, names))) {
				this.#hasBlocks = true;
				this.#afterStrayDirective = false;
				this.#sites.push({ block: undefined, piece });
				continue;
			}
			const beginsBetweenBlocks = this.isBetweenBlocks;
			this.#pieceMemory?.onPieceBegin(piece);
			const { lines, source, isPlain, hasMistakes } = this.#importer.readPiece(piece);
			const definitionCountBefore = this.size;
			const siteCount = this.#sites.length;
			const constantsCount = this.#siteConstants.length;
			this.addLines(lines, { ...frame, source });
			piece.release();
			const newSite = this.#sites[siteCount];
			const site =
				isPlain && beginsBetweenBlocks && this.isBetweenBlocks && newSite && this.size === definitionCountBefore + 1
					? newSite.block
					: undefined;
			if (site) this.#sites[siteCount] = { block: site, piece };
			const reusable =
				!hasMistakes &&
				this.#siteConstants.slice(constantsCount).every(siteConstants => siteConstants.unusedConstants().length === 0);
			this.#pieceMemory?.onPieceEnd(site, reusable, names);
		}
	}

	/** Number of names and sites that have been defined so far. */
	get size(): number {
		const blockCount = this.#sites.length + this.#routes.length + this.#upstreams.length + this.#tests.length;
		return blockCount + this.#importer.snippets.size + this.#constants.size + (this.#options ? 1 : 0);
	}

	/** True between blocks, where the next line is interpreted, and its mistakes are reported, independently of earlier lines. */
	get isBetweenBlocks(): boolean {
		return !this.#openSite && !this.#pendingHead && !this.#addresses.hasStarted && !this.#afterStrayDirective;
	}

	get sites(): readonly SiteEntry[] {
		return this.#sites;
	}

	/** Removes all sites that have been added. */
	forgetSites(): void {
		this.#sites.length = 0;
		this.#siteConstants.length = 0;
	}

	/** Adds lines. All lines must be added in file order. */
	addLines(lines: readonly ParsedLine[], frame: Frame): void {
		for (const line of lines) {
			if (this.#report.isExhausted) return;
			this.#addLine(line, frame);
		}
	}

	/** Completes or reports a site or block that is unfinished at the end of the main file. Returns the tree. */
	finish(): ConfigTree {
		this.#settlePendingHead();
		this.#closeOpenSite();
		if (this.#dialect === 'configfile') for (const warning of this.unusedNames()) this.#report.report(warning);
		return {
			options: this.#options,
			namedRoutes: this.#routes,
			upstreams: this.#upstreams,
			tests: this.#tests,
			sites: this.#sites.flatMap(({ block }) => block ?? []),
			files: this.#importer.files,
		};
	}

	#addLine(line: ParsedLine, frame: Frame): void {
		const firstWord = line.words[0];
		const keyword = firstWord?.quote === 'none' ? firstWord.text : undefined;
		if (line.shapeFlags & lineShapes.afterOpenSite) {
			this.#settlePendingHead();
			this.#closeOpenSite();
		}
		if (this.#openSite && !this.#endsOpenSite(line, keyword)) {
			this.#expander.expandLineInto(this.#openSite.lines, line, frame, this.#openSite.constants, 'site', 1);
			this.#openSite.span = {
				...this.#openSite.span,
				end: Math.max(this.#openSite.span.end, this.#endInOpenSite(line, frame)),
			};
			return;
		}
		if (!firstWord) {
			this.#addBareBlock(line, frame);
			return;
		}
		const insertedLines = line.needsExpansion ? this.#expander.insertedLines(line, frame) : undefined;
		if (insertedLines) {
			this.addLines(insertedLines, { ...frame, hasOwnSpans: true, imported: false });
			return;
		}
		if (keyword === 'import' || (keyword === 'use' && this.#dialect === 'configfile')) {
			if (this.#pendingHead?.kind === 'block') this.#settlePendingHead(line, frame);
			for (const imported of this.#importer.resolveImport(line, frame, this.#constants, this.#expander, 1, true)) {
				this.addFile(imported);
			}
			return;
		}
		if (this.#pendingHead) {
			if (this.#pendingHead.kind === 'site' && this.#addresses.expectsAddress) {
				this.#addSiteHead(line, frame);
				return;
			}
			this.#settlePendingHead(line, frame);
			if (this.#openSite) {
				this.#addLine(line, frame);
				return;
			}
		}
		this.#addHead(line, firstWord, frame);
	}

	/**
	 * Reports whether a line ends a site without braces. In a Configfile, a block that begins with a keyword of the language ends
	 * the site, because such a block is never a directive.
	 */
	#endsOpenSite(line: ParsedLine, keyword: string | undefined): boolean {
		if (this.#dialect !== 'configfile' || !line.block) return false;
		return keyword === 'test' || (keyword !== undefined && isSnippetHead(keyword));
	}

	#endInOpenSite(line: ParsedLine, frame: Frame): number {
		return frame.source === this.#openSite!.span.source ? line.span.end : 0;
	}

	#addHead(line: ParsedLine, firstWord: ParsedWord, frame: Frame): void {
		const { text, quote } = firstWord;
		if (quote === 'none' && isSnippetHead(text)) {
			this.#addNamedBlock(line, frame);
		} else if (quote === 'none' && namedRouteHead.test(text) && line.words.length === 1)
			this.#addNamedBlock(line, frame);
		else if (this.#dialect === 'configfile' && quote === 'none' && text === 'let') {
			this.#expander.defineConstant(line, frame, this.#constants);
		} else if (this.#dialect === 'configfile' && quote === 'none' && (text === 'upstream' || text === 'test')) {
			this.#addNamedBlock(line, frame);
		} else if (this.#dialect === 'configfile' && quote === 'none' && text === 'else') {
			this.#reportElseAlone(line, frame);
		} else this.#addSiteHead(line, frame);
	}

	/** Adds a named block of any kind. If there is no `{` on its line, the next line may have it. */
	#addNamedBlock(line: ParsedLine, frame: Frame): void {
		this.#afterStrayDirective = false;
		if (!line.block) {
			this.#pendingHead = { kind: 'block', line, frame };
			return;
		}
		this.#reportAlternative(line, frame);
		const text = line.words[0]!.text;
		const route = namedRouteHead.exec(text);
		if (route) this.#addRoute(line, line.block, route[1]!, frame);
		else if (text === 'upstream' || text === 'test') this.#addUpstreamOrTest(line, line.block, text, frame);
		else defineSnippet(line, line.block, frame, this.#importer.snippets, this.#constants, this.#report);
	}

	#addRoute(line: ParsedLine, block: ParsedBlock, name: string, frame: Frame): void {
		this.#hasBlocks = true;
		const word: Word = { text: name, quote: 'none', span: spanIn(frame, line.words[0]!.span) };
		const existingRoute = this.#routes.find(route => route.name.text === name);
		if (existingRoute) {
			this.#reportProblem('route/defined-twice', word.span, `cannot have duplicate named_routes: ${name}`, {
				label: 'defined again',
				related: [{ span: existingRoute.name.span, message: 'first defined here' }],
			});
		}
		const lines = this.#expander.expandLines(block.lines, frame, new Constants(this.#constants), 'nested', 2);
		if (!existingRoute) this.#routes.push({ name: word, lines, span: spanIn(frame, line.span) });
	}

	/** Adds `upstream NAME { … }` or `test "NAME" { … }`. */
	#addUpstreamOrTest(line: ParsedLine, block: ParsedBlock, kind: 'upstream' | 'test', frame: Frame): void {
		this.#hasBlocks = true;
		const scope = { frame, constants: this.#constants, report: this.#report };
		const [keyword, name, ...extraWords] = expandWords(line.words, scope);
		if (line.shapeFlags & lineShapes.closeAfterWords) this.#reportCloseAfterWords(block, frame);
		if (!name || name.text === '') {
			this.#reportProblem(
				`${kind}/no-name`,
				keyword!.span,
				`wrong argument count or unexpected line ending after '${kind}'`,
				{
					label: 'a name is missing',
					hint: kind === 'test' ? 'Write `test "what it shows" { … }`.' : 'Write `upstream NAME { … }`.',
				},
			);
		} else if (extraWords.length > 0) {
			this.#reportProblem(`${kind}/too-many-words`, extraWords[0]!.span, `\`${kind}\` takes only one name`, {
				hint: kind === 'test' ? 'Put the name in quotes.' : 'A name is one word.',
			});
		}
		const lines = this.#expander.expandLines(block.lines, frame, this.#constants, 'nested', 2);
		const namedBlock = { name: name ?? keyword!, lines, span: spanIn(frame, line.span) };
		if (name) (kind === 'test' ? this.#tests : this.#upstreams).push(namedBlock);
	}

	#addBareBlock(line: ParsedLine, frame: Frame): void {
		const pendingHead = this.#pendingHead;
		if (pendingHead) {
			this.#pendingHead = undefined;
			if (pendingHead.kind === 'block') {
				this.#addNamedBlock({ ...pendingHead.line, block: line.block, shapeFlags: line.shapeFlags }, pendingHead.frame);
			} else if (pendingHead.kind === 'site') this.#endSite(line, frame);
			return;
		}
		if (this.#addresses.hasStarted) this.#endSite(line, frame);
		else this.#addGlobalOptions(line, line.block!, frame);
	}

	#addGlobalOptions(line: ParsedLine, block: ParsedBlock, frame: Frame): void {
		this.#afterStrayDirective = false;
		if (line.shapeFlags & lineShapes.closeAfterWords) this.#reportCloseAfterWords(block, frame);
		if (this.#hasBlocks) {
			const message = 'server block without any key is global configuration, and if used, it must be first';
			const hint = this.#options
				? 'Put these options into the block at the top of the file.'
				: 'Move it to the top of the file, or write an address before `{`.';
			this.#reportProblem('syntax/options-not-first', spanIn(frame, block.open), message, {
				label: 'has no address',
				hint,
			});
			return;
		}
		this.#hasBlocks = true;
		this.#options = this.#expander.expandBlock(block, frame, this.#constants, 1);
	}

	#addSiteHead(line: ParsedLine, frame: Frame): void {
		const words = expandWords(line.words, { frame, constants: this.#constants, report: this.#report });
		const outcome = this.#addresses.addWords(words, this.#afterStrayDirective);
		if (outcome === 'directive') {
			this.#afterStrayDirective = true;
			this.#pendingHead = line.block ? undefined : { kind: 'misplaced', line, frame };
			return;
		}
		this.#afterStrayDirective = false;
		this.#pendingHead = undefined;
		if (line.block) this.#endSite(line, frame);
		else this.#pendingHead = { kind: 'site', line, frame };
	}

	/** Completes the addresses of a site, and adds the site. `line` has the site's block. */
	#endSite(line: ParsedLine, frame: Frame): void {
		this.#afterStrayDirective = false;
		this.#hasBlocks = true;
		this.#reportAlternative(line, frame);
		const block = line.block!;
		const openSpan = spanIn(frame, block.open);
		const { words, hasRejected } = this.#addresses.finish(openSpan);
		if (line.shapeFlags & lineShapes.closeAfterWords) this.#reportCloseAfterWords(block, frame);
		const constants = this.#newSiteConstants();
		const lines = this.#expander.expandLines(block.lines, frame, constants, 'site', 2);
		if (words.length === 0) {
			if (hasRejected) return;
			const message = 'server block without any key is global configuration, and if used, it must be first';
			this.#reportProblem('syntax/options-not-first', openSpan, message, { label: 'has no address' });
			return;
		}
		const firstSpan = words[0]!.span;
		const end = spanIn(frame, line.span).end;
		const span = { ...firstSpan, end: Math.max(firstSpan.end, end) };
		this.#addSite({ addresses: words, lines, hasBraces: true, span });
	}

	/**
	 * Handles a head after which neither a block nor another address follows: either it begins a site without braces, or its block
	 * is missing.
	 */
	#settlePendingHead(nextLine?: ParsedLine, frame?: Frame): void {
		const pendingHead = this.#pendingHead;
		this.#pendingHead = undefined;
		if (pendingHead?.kind === 'block') this.#reportMissingBlock(pendingHead, nextLine, frame ?? pendingHead.frame);
		if (pendingHead?.kind !== 'site') return;
		const { words } = this.#addresses.finish(undefined);
		this.#hasBlocks = true;
		if (words.length === 0) return;
		const span = { ...words[0]!.span, end: words[words.length - 1]!.span.end };
		this.#openSite = {
			addresses: words,
			lines: [],
			constants: this.#newSiteConstants(),
			span: { ...span, end: Math.max(span.start, span.end) },
		};
	}

	#reportMissingBlock({ line, frame }: PendingHead, nextLine: ParsedLine | undefined, nextFrame: Frame): void {
		const span = spanIn(frame, line.words[0]!.span);
		const [headWord] = line.words;
		if (frame.imported && nextLine?.words[0]?.text === 'import' && isSnippetHead(headWord!.text)) {
			const name = this.#dialect === 'compatfile' ? 'Compatfile' : 'Configfile';
			const message = `global options block must appear before import directives; move the global options block to the top of the ${name}`;
			this.#reportProblem('syntax/options-after-import', span, message, {});
			return;
		}
		const token = nextLine?.words[0] ?? headWord!;
		const message = `syntax error: unexpected token '${token.text}', expecting '{'`;
		this.#reportProblem('syntax/block-expected', span, message, {
			// As in Caddy, this message contains the file and line of the token.
			...(this.#dialect === 'compatfile' && {
				message: syntaxError(token.text, '{', spanIn(nextFrame, token.span)),
			}),
			label: 'needs a block',
			hint: `Write \`${headWord!.text} { … }\`.`,
		});
	}

	#closeOpenSite(): void {
		if (!this.#openSite) return;
		const { addresses, lines, span } = this.#openSite;
		this.#addSite({ addresses, lines, hasBraces: false, span });
		this.#openSite = undefined;
	}

	#addSite(block: SiteBlock): void {
		this.#sites.push({ block, piece: undefined });
	}

	#newSiteConstants(): Constants {
		const constants = new Constants(this.#constants);
		this.#siteConstants.push(constants);
		return constants;
	}

	#reportAlternative(line: ParsedLine, frame: Frame): void {
		if (line.alternative) this.#reportElseAlone(line.alternative, frame);
	}

	#reportElseAlone(line: ParsedLine, frame: Frame): void {
		const message = '`else` is allowed only after a `when` inside a site';
		this.#reportProblem('syntax/else-alone', spanIn(frame, line.words[0]!.span), message, {
			label: 'no `when` before this',
		});
	}

	#reportCloseAfterWords(block: ParsedBlock, frame: Frame): void {
		this.#report.report(misplacedCloseMistake(spanIn(frame, block.close), this.#dialect));
	}

	#reportProblem(code: string, span: SourceSpan, message: string, details: Partial<Diagnostic>): void {
		this.#report.report(structureMistake(this.#dialect, code, span, message, details));
	}

	/** Returns warnings about unused names in the main file; none after an error, because the error may have hidden a use. */
	unusedNames(): readonly Diagnostic[] {
		if (this.#report.hasErrors) return [];
		const warnings: Diagnostic[] = [];
		for (const snippet of this.#importer.snippets.values()) {
			if (snippet.inMainFile && !snippet.isUsed)
				warnings.push(unusedName('snippet/unused', snippet.headWord, `The snippet \`${snippet.name}\``));
		}
		for (const constants of [this.#constants, ...this.#siteConstants]) {
			for (const constant of constants.unusedConstants()) {
				const subject = `The constant \`${constant.name.text}\``;
				warnings.push(unusedName('let/unused', constant.name, subject, removalFix(constant)));
			}
		}
		return warnings;
	}
}

function unusedName(code: string, { span }: Word, subject: string, fix?: Fix): Diagnostic {
	return {
		code,
		severity: 'warning',
		message: `${subject} is never used.`,
		span,
		hint: 'Use it or remove it.',
		fix,
	};
}

/** Returns the fix that removes the lines of a constant; undefined if these lines have other content. */
function removalFix({ name, values }: Constant): Fix | undefined {
	const { source, start } = name.span;
	const lineStart = source.text.lastIndexOf('\n', start - 1) + 1;
	const end = values.at(-1)?.span.end ?? name.span.end;
	if (!/^[ \t]*let[ \t]+$/.test(source.text.slice(lineStart, start))) return undefined;
	if (!/^[ \t\r]*(?:\n|$)/.test(source.text.slice(end))) return undefined;
	return { safety: 'safe', edits: [{ span: wholeLinesSpan({ source, start: lineStart, end }), text: '' }] };
}
