/** The state while a tree is lowered: parsers of values, the scope of named matchers, and everything that sites share. */
import { dirname, isAbsolute, resolve } from 'node:path';
import type { Diagnostic, Report, Severity } from '../diagnostics/diagnostic.ts';
import { didYouMean, nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Matcher, Step } from '../document/document.ts';
import { foreignHint } from '../modules/contract/foreign-words.ts';
import type { LowerContext, SubdirectiveHandler, UnknownSubdirective } from '../modules/contract/lower-context.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Block, Line, Word } from '../syntax/ast.ts';
import { withCompatibleMessage } from './compatible-message.ts';
import { acceptedWordsHint } from './context/accepted-words.ts';
import { formatNameList, spanOfWords } from './context/sentences.ts';
import { suggestMove } from './context/suggest-move.ts';
import { parseBoolean, parseDuration, parseSize, parseStatus } from './context/values.ts';
import type { NamedRoutes } from './lower-named-routes.ts';
import { lowerLines } from './lower-pipeline.ts';
import { lowerMatcherExpression } from './matcher-expression.ts';
import { MatcherLimits } from './matcher-limits.ts';
import type { MatcherScope } from './matcher-scope.ts';
import type { Origins } from './origins.ts';
import type { Placeholders } from './placeholders.ts';
import type { Registry } from './registry.ts';
import type { SiteDependencies } from './site-dependencies.ts';

/** The input of lowering, apart from the tree. */
export interface LoweringEnvironment {
	readonly dialect: Dialect;
	report: Report;
	readonly registry: Registry;
	readonly placeholders: Placeholders;
	/** Receives the spans from which objects are lowered. */
	origins: Origins;
	readonly files: readonly string[];
	/** Folder against which relative paths are resolved if the configuration has no file. */
	readonly workingDirectory: string;
	/** The upstreams that can be used by name, and whether each one has been used. */
	readonly upstreams: Map<string, { used: boolean }>;
	readonly routes: NamedRoutes;
	/** Returns the names of placeholders that `map` defines in the site and in named routes. */
	mappedNames: () => ReadonlySet<string>;
	/** Positions of directives in the order of a Compatfile. */
	readonly positions: ReadonlyMap<string, number>;
	/** The global options that have been lowered so far. */
	readonly settings: { readonly [setting: string]: unknown };
	/** Records what the lowering of the current site depends on besides the site's own lines. */
	dependencies: SiteDependencies | undefined;
}

/** The {@link LowerContext} of a site, a global block or a named upstream. */
export class Lowering implements LowerContext {
	readonly dialect: Dialect;
	readonly environment: LoweringEnvironment;
	/** The named matchers that can be used; undefined outside of a site. */
	matcherScope: MatcherScope | undefined = undefined;
	/**
	 * The directive or option that is being lowered, the innermost one if they are nested. Named in messages about a Compatfile.
	 */
	directive: string | undefined = undefined;
	/**
	 * The upstreams that the current site defines. They never hide other upstreams, because a name refers to one pool in the whole
	 * configuration.
	 */
	siteUpstreams: ReadonlyMap<string, { used: boolean }> | undefined = undefined;

	readonly matcherLimits = new MatcherLimits();

	constructor(environment: LoweringEnvironment) {
		this.environment = environment;
		this.dialect = environment.dialect;
	}

	get files(): readonly string[] {
		const { files, dependencies } = this.environment;
		if (dependencies) dependencies.usesFiles = true;
		return files;
	}

	report(diagnostic: Diagnostic): void {
		this.environment.report(diagnostic);
	}

	problem(severity: Severity, code: string, span: SourceSpan, message: string, details?: Partial<Diagnostic>): void {
		const wording =
			this.dialect === 'compatfile' && severity === 'error' && !code.startsWith('address/')
				? withCompatibleMessage(message, this.directive)
				: { message };
		this.environment.report({ ...details, code, severity, ...wording, span });
	}

	count(line: Line, args: readonly Word[], min: number, max: number, usage: string): boolean {
		if (args.length >= min && args.length <= max) return true;
		const name = line.words[0]!;
		const hint = `Usage: ${usage}`;
		const tooFew = args.length < min;
		const lastWord = line.words[line.words.length - 1]!;
		const span = tooFew ? name.span : spanOfWords(args.slice(max));
		const code = tooFew ? 'arguments/too-few' : 'arguments/too-many';
		if (this.dialect === 'compatfile') {
			const message = `wrong argument count or unexpected line ending after '${lastWord.text}'`;
			this.problem('error', code, span, message, { hint });
			return false;
		}
		const expectedCount = tooFew ? min : max;
		const expectation =
			expectedCount === 0
				? 'no argument'
				: `${tooFew ? 'at least' : 'at most'} ${expectedCount} argument${expectedCount === 1 ? '' : 's'}`;
		const message = `\`${name.text}\` takes ${min === max && max > 0 ? expectation.replace(/^at (least|most) /, '') : expectation}.`;
		this.problem('error', code, span, message, { hint });
		return false;
	}

	subdirectives(
		block: Block | undefined,
		handlers: { readonly [name: string]: SubdirectiveHandler },
		owner: string,
		{
			foreignWords,
			wordsOfInnerBlocks = {},
			compatibleMessage = name => `unrecognized subdirective ${name}`,
		}: UnknownSubdirective = {},
	): void {
		if (!block) return;
		for (const line of block.lines) {
			const name = line.words[0]!;
			const handler = Object.hasOwn(handlers, name.text) ? handlers[name.text] : undefined;
			if (handler) {
				handler(line.words.slice(1), line);
				continue;
			}
			const message =
				this.dialect === 'compatfile'
					? compatibleMessage(name.text)
					: `\`${name.text}\` is not a sub-directive of \`${owner}\`.`;
			const innerOwner = Object.hasOwn(wordsOfInnerBlocks, name.text) ? wordsOfInnerBlocks[name.text] : undefined;
			if (innerOwner !== undefined) {
				this.problem('error', 'directive/unknown-subdirective', name.span, message, {
					...suggestMove(line, block, innerOwner),
					hint: `Write it in the block of \`${innerOwner}\`.`,
				});
				continue;
			}
			const foreignWordHint = foreignWords && foreignHint(name.text, foreignWords);
			this.problem('error', 'directive/unknown-subdirective', name.span, message, {
				...(foreignWordHint === undefined ? didYouMean(name, Object.keys(handlers)) : {}),
				hint: foreignWordHint ?? acceptedWordsHint(owner, name.text, Object.keys(handlers)),
			});
		}
	}

	noBlock(line: Line): boolean {
		if (!line.block) return true;
		const name = line.words[0]!;
		this.problem('error', 'directive/unexpected-block', line.block.open, `\`${name.text}\` takes no block.`);
		return false;
	}

	template(word: Word): string {
		if (!word.text.includes('{')) return word.text;
		if (this.dialect === 'configfile') {
			for (const unknown of this.environment.placeholders.findUnknown(word.text)) {
				if (this.environment.mappedNames().has(unknown.name)) continue;
				this.problem('error', 'placeholder/unknown', word.span, `\`{${unknown.name}}\` is not a placeholder.`, {
					...suggestName({ text: `{${unknown.name}}`, span: word.span }, unknown.nearest && `{${unknown.nearest}}`),
					hint: 'Write `\\{` for a literal brace.',
				});
			}
		}
		return this.environment.placeholders.expandNames(word.text, this.dialect);
	}

	duration(word: Word): number | undefined {
		const value = parseDuration(word.text);
		return (
			value ?? this.#reportWrong(word, 'duration', 'Write a number with a unit, such as 250ms, 10s, 5m, 2h or 1d.')
		);
	}

	size(word: Word): number | undefined {
		const value = parseSize(word.text);
		return value ?? this.#reportWrong(word, 'size', 'Write a number of bytes with a unit, such as 64KiB or 10MB.');
	}

	status(word: Word): number | undefined {
		const value = parseStatus(word.text);
		return value ?? this.#reportWrong(word, 'status', 'Write three digits from 100 to 599.');
	}

	integer(word: Word, min?: number, max?: number): number | undefined {
		const value = /^[+-]?\d{1,15}$/.test(word.text) ? Number(word.text) : undefined;
		if (value === undefined) return this.#reportWrong(word, 'whole number', undefined);
		if ((min === undefined || value >= min) && (max === undefined || value <= max)) return value;
		const range = max === undefined ? `${min} or more` : min === undefined ? `${max} or less` : `from ${min} to ${max}`;
		this.problem('error', 'value/out-of-range', word.span, `${value} is out of range.`, {
			hint: `Write a number ${range}.`,
		});
		return undefined;
	}

	boolean(word: Word): boolean | undefined {
		return parseBoolean(word.text) ?? this.#reportWrong(word, 'switch', 'Write on or off.');
	}

	regexp(word: Word, use?: 'matcher'): string | undefined {
		const mistake = this.environment.placeholders.regexpMistake(word.text);
		if (mistake === undefined) return word.text;
		const { code, message, hint } = mistake;
		const prefix = use === 'matcher' && this.dialect === 'compatfile' ? `compiling matcher regexp ${word.text}: ` : '';
		this.problem('error', code, word.span, prefix + message, hint === undefined ? {} : { hint });
		return undefined;
	}

	oneOf<const T extends string>(word: Word, values: readonly T[], valueName: string): T | undefined {
		const value = values.find(known => known === word.text);
		if (value !== undefined) return value;
		this.problem(
			'error',
			'value/unknown',
			word.span,
			`\`${word.text}\` is not ${/^[aeiou]/.test(valueName) ? 'an' : 'a'} ${valueName}.`,
			{
				...didYouMean(word, values),
				hint: `Write ${formatNameList(values, 'or')}.`,
			},
		);
		return undefined;
	}

	/** Calls `lower`. Until it returns, messages about a Compatfile name `directive`. */
	within<T>(directive: string | undefined, lower: () => T): T {
		const outerDirective = this.directive;
		this.directive = directive;
		try {
			return lower();
		} finally {
			this.directive = outerDirective;
		}
	}

	pipeline(lines: readonly Line[]): Step[] {
		return lowerLines(this, lines, this.dialect === 'compatfile' ? 'sorted' : 'written', undefined);
	}

	pipelineInOrder(lines: readonly Line[]): Step[] {
		return lowerLines(this, lines, 'route', undefined);
	}

	matcherExpression(words: readonly Word[], block: Block | undefined, name: string | undefined): Matcher | undefined {
		return lowerMatcherExpression(this, words, block, name);
	}

	origin<T extends object>(value: T, span: SourceSpan, fields?: { readonly [K in keyof T]?: SourceSpan }): T {
		this.environment.origins.remember(value, span, fields as { [field: string]: SourceSpan } | undefined);
		return value;
	}

	filePath(text: string, span: SourceSpan): string {
		if (this.dialect === 'compatfile' || isAbsolute(text) || text.startsWith('{')) return text;
		const { dependencies, workingDirectory } = this.environment;
		if (dependencies) dependencies.usesFolder = true;
		return resolve(span.source.path === undefined ? workingDirectory : dirname(span.source.path), text);
	}

	hasSetting(name: 'dns' | 'acme_dns'): boolean {
		return this.environment.settings[name] !== undefined;
	}

	useRoute(name: Word): void {
		this.environment.dependencies?.routes.push(name);
		this.environment.routes.recordUse(name);
	}

	placeholderKind(name: string): 'shorthand' | 'full' | undefined {
		const text = `{${name}}`;
		if (this.environment.placeholders.expandNames(text, 'configfile') !== text) return 'shorthand';
		return this.environment.placeholders.findUnknown(text).length === 0 ? 'full' : undefined;
	}

	upstreamExists(name: string): boolean {
		const siteUpstream = this.siteUpstreams?.get(name);
		const upstream = siteUpstream ?? this.environment.upstreams.get(name);
		if (upstream) upstream.used = true;
		if (upstream && !siteUpstream) this.environment.dependencies?.upstreams.push(name);
		return upstream !== undefined;
	}

	nearestUpstream(name: string): string | undefined {
		const names = [...(this.siteUpstreams?.keys() ?? []), ...this.environment.upstreams.keys()];
		const nearest = nearestName(name, names);
		if (nearest !== undefined) this.upstreamExists(nearest);
		return nearest;
	}

	#reportWrong(word: Word, typeName: string, hint: string | undefined): undefined {
		this.problem(
			'error',
			`value/not-a-${typeName.replaceAll(' ', '-')}`,
			word.span,
			`\`${word.text}\` is not a ${typeName}.`,
			{
				hint,
			},
		);
		return undefined;
	}
}
