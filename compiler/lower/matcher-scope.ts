/**
 * Named matchers of a site or nested block. They can be defined in any order, are lowered once, and are visible in nested blocks.
 */
import type { Fix } from '../diagnostics/diagnostic.ts';
import { nearestName, suggestName } from '../diagnostics/suggest.ts';
import type { Matcher } from '../document/document.ts';
import { wholeLinesSpan } from '../source/source.ts';
import type { Line, Word } from '../syntax/ast.ts';
import type { Lowering } from './lowering.ts';
import { MAX_MATCHER_DEPTH } from './matcher-limits.ts';

interface Definition {
	readonly name: string;
	readonly word: Word;
	readonly line: Line;
	state: 'pending' | 'resolving' | 'done';
	matcher: Matcher | undefined;
	/** Number of matchers to which the definition expands. */
	matcherCount: number;
	used: boolean;
	/** True if a cycle that contains the definition has been reported. */
	cyclic: boolean;
}

/** Reports whether a line defines a named matcher. */
export function isMatcherDefinition(line: Line): boolean {
	const word = line.words[0]!;
	return word.text.startsWith('@') && word.quote === 'none';
}

/** Returns the fix that removes an unused definition; undefined in imported text, which may be used elsewhere. */
function removalFix({ span }: Line): Fix | undefined {
	if (span.source.importedAt) return undefined;
	return { safety: 'safe', edits: [{ span: wholeLinesSpan(span), text: '' }] };
}

/** The named matchers of a site or block. Names that this scope does not define are looked up in the enclosing scopes. */
export class MatcherScope {
	readonly #lowering: Lowering;
	readonly #parent: MatcherScope | undefined;
	readonly #definitions = new Map<string, Definition>();

	constructor(lowering: Lowering, parent: MatcherScope | undefined) {
		this.#lowering = lowering;
		this.#parent = parent;
	}

	/** Adds a definition without lowering it. */
	define(line: Line): void {
		const word = line.words[0]!;
		const name = word.text;
		const compat = this.#lowering.dialect === 'compatfile';
		if (name.length < 2) {
			this.#lowering.problem('error', 'matcher/without-name', word.span, 'A named matcher needs a name after its `@`.');
			return;
		}
		const earlier = this.#find(name);
		if (earlier) {
			const message = compat ? `matcher is defined more than once: ${name}` : `\`${name}\` is defined more than once.`;
			this.#lowering.problem('error', 'matcher/defined-twice', word.span, message, {
				related: [{ span: earlier.word.span, message: 'first defined here' }],
			});
			earlier.used = true;
			return;
		}
		this.#definitions.set(name, {
			name,
			word,
			line,
			state: 'pending',
			matcher: undefined,
			matcherCount: 0,
			used: false,
			cyclic: false,
		});
	}

	/** Returns the matcher with a name, and marks it as used. If there is none, reports why and returns undefined. */
	resolve(reference: Word): Matcher | undefined {
		const definition = this.#find(reference.text);
		const compat = this.#lowering.dialect === 'compatfile';
		if (!definition) {
			const message = compat
				? `unrecognized matcher name: ${reference.text}`
				: `\`${reference.text}\` is not defined here.`;
			const nearest = nearestName(reference.text, this.visibleNames());
			// The most similar matcher was probably meant, so it is not reported as unused.
			if (nearest !== undefined) this.markUsed(nearest);
			this.#lowering.problem('error', 'matcher/unknown-name', reference.span, message, {
				...suggestName(reference, nearest),
			});
			return undefined;
		}
		definition.used = true;
		if (definition.state === 'resolving') {
			if (definition.cyclic) return undefined;
			definition.cyclic = true;
			this.#lowering.problem(
				'error',
				'matcher/cycle',
				reference.span,
				`\`${reference.text}\` is defined in terms of itself.`,
				{
					related: [{ span: definition.word.span, message: 'the cycle goes through this definition' }],
				},
			);
			return undefined;
		}
		const limits = this.#lowering.matcherLimits;
		const owner = this.#ownerOf(reference.text);
		if (definition.state === 'pending') {
			limits.runDeeper(() => owner.#lower(definition));
			// The limit is reported only once, because every matcher that refers to this one exceeds it as well.
			if ((definition.state as Definition['state']) === 'pending' && !limits.reported) {
				limits.reported = true;
				const message = `Matchers are nested more than ${MAX_MATCHER_DEPTH} levels deep.`;
				this.#lowering.problem('error', 'matcher/too-deep', reference.span, message);
			}
		} else if (!limits.addMatchers(definition.matcherCount)) {
			if (!limits.reported) {
				this.#lowering.problem(
					'error',
					'matcher/too-many',
					reference.span,
					'Named matchers expand to too many matchers.',
					{
						hint: 'Look for names that refer to each other many times.',
					},
				);
			}
			limits.reported = true;
			return undefined;
		}
		return definition.matcher;
	}

	/** Marks a name as used although its line cannot be lowered, so that it is not also reported as unused. */
	markUsed(name: string): void {
		const definition = this.#find(name);
		if (definition) definition.used = true;
	}

	/**
	 * Lowers the matchers that nothing refers to, so that their mistakes are reported. In a Configfile, warns about these matchers.
	 */
	close(): void {
		for (const definition of this.#definitions.values()) {
			const { used } = definition;
			this.#lower(definition);
			if (used || this.#lowering.matcherLimits.reported || this.#lowering.dialect === 'compatfile') continue;
			if (definition.used) continue;
			this.#lowering.problem(
				'warning',
				'matcher/unused',
				definition.word.span,
				`\`${definition.name}\` is never used.`,
				{ fix: removalFix(definition.line) },
			);
		}
	}

	/** Returns every visible name. */
	visibleNames(): string[] {
		return [...this.#definitions.keys(), ...(this.#parent?.visibleNames() ?? [])];
	}

	#lower(definition: Definition): Matcher | undefined {
		if (definition.state !== 'pending') return definition.matcher;
		definition.state = 'resolving';
		const countBefore = this.#lowering.matcherLimits.count;
		const lowering = this.#lowering;
		const outerScope = lowering.scope;
		lowering.scope = this;
		const { words, block } = definition.line;
		definition.matcher = lowering.within(undefined, () =>
			lowering.matcherExpression(words.slice(1), block, definition.name.slice(1)),
		);
		if (definition.matcher) lowering.origin(definition.matcher, definition.line.span);
		lowering.scope = outerScope;
		definition.state = 'done';
		definition.matcherCount = lowering.matcherLimits.count - countBefore;
		return definition.matcher;
	}

	#find(name: string): Definition | undefined {
		const definition = this.#definitions.get(name);
		if (definition || !this.#parent) return definition;
		return this.#parent.#find(name);
	}

	#ownerOf(name: string): MatcherScope {
		if (this.#definitions.has(name) || !this.#parent) return this;
		return this.#parent.#ownerOf(name);
	}
}
