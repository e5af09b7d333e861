/** Named matchers of a site or block. They can be defined in any order, are lowered once, and are visible in nested blocks. */
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
	/** Number of matchers to which the name expands. */
	matcherCount: number;
	isUsed: boolean;
	/** True if a cycle through this definition has been reported. */
	isCycleReported: boolean;
}

export function isMatcherDefinition(line: Line): boolean {
	const word = line.words[0]!;
	return word.text.startsWith('@') && word.quote === 'none';
}

/** Returns the fix that removes an unused definition; undefined for imported text, which other files may use. */
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
		const isCompatfile = this.#lowering.dialect === 'compatfile';
		if (name.length < 2) {
			this.#lowering.problem('error', 'matcher/without-name', word.span, 'A named matcher needs a name after its `@`.');
			return;
		}
		const earlierDefinition = this.#findDefinition(name);
		if (earlierDefinition) {
			const message = isCompatfile
				? `matcher is defined more than once: ${name}`
				: `\`${name}\` is defined more than once.`;
			this.#lowering.problem('error', 'matcher/defined-twice', word.span, message, {
				related: [{ span: earlierDefinition.word.span, message: 'first defined here' }],
			});
			earlierDefinition.isUsed = true;
			return;
		}
		this.#definitions.set(name, {
			name,
			word,
			line,
			state: 'pending',
			matcher: undefined,
			matcherCount: 0,
			isUsed: false,
			isCycleReported: false,
		});
	}

	/**
	 * Returns the matcher to which a reference refers, and marks it as used. If it cannot be resolved, reports why and returns
	 * undefined.
	 */
	resolve(reference: Word): Matcher | undefined {
		const definition = this.#findDefinition(reference.text);
		const isCompatfile = this.#lowering.dialect === 'compatfile';
		if (!definition) {
			const message = isCompatfile
				? `unrecognized matcher name: ${reference.text}`
				: `\`${reference.text}\` is not defined here.`;
			const nearest = nearestName(reference.text, this.visibleNames());
			// The most similar matcher was probably meant, so it must not be reported as unused.
			if (nearest !== undefined) this.markUsed(nearest);
			this.#lowering.problem('error', 'matcher/unknown-name', reference.span, message, {
				...suggestName(reference, nearest),
			});
			return undefined;
		}
		definition.isUsed = true;
		if (definition.state === 'resolving') {
			if (definition.isCycleReported) return undefined;
			definition.isCycleReported = true;
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
			limits.runDeeper(() => owner.#lowerDefinition(definition));
			// The limit is reported only once, because every matcher that refers to this one exceeds it as well.
			if ((definition.state as Definition['state']) === 'pending' && !limits.isReported) {
				limits.isReported = true;
				const message = `Matchers are nested more than ${MAX_MATCHER_DEPTH} levels deep.`;
				this.#lowering.problem('error', 'matcher/too-deep', reference.span, message);
			}
		} else if (!limits.addMatchers(definition.matcherCount)) {
			if (!limits.isReported) {
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
			limits.isReported = true;
			return undefined;
		}
		return definition.matcher;
	}

	/**
	 * Marks a matcher as used. For references in lines that cannot be lowered, so that the matcher is not also reported as unused.
	 */
	markUsed(name: string): void {
		const definition = this.#findDefinition(name);
		if (definition) definition.isUsed = true;
	}

	/**
	 * Lowers the matchers to which nothing refers, so that mistakes in them are reported. In a Configfile, also warns about them.
	 */
	lowerUnusedMatchers(): void {
		for (const definition of this.#definitions.values()) {
			const { isUsed: wasUsed } = definition;
			this.#lowerDefinition(definition);
			if (wasUsed || this.#lowering.matcherLimits.isReported || this.#lowering.dialect === 'compatfile') continue;
			if (definition.isUsed) continue;
			this.#lowering.problem(
				'warning',
				'matcher/unused',
				definition.word.span,
				`\`${definition.name}\` is never used.`,
				{ fix: removalFix(definition.line) },
			);
		}
	}

	/** Returns the names of all matchers that can be used in this scope. */
	visibleNames(): string[] {
		return [...this.#definitions.keys(), ...(this.#parent?.visibleNames() ?? [])];
	}

	#lowerDefinition(definition: Definition): Matcher | undefined {
		if (definition.state !== 'pending') return definition.matcher;
		definition.state = 'resolving';
		const matcherCountBefore = this.#lowering.matcherLimits.matcherCount;
		const lowering = this.#lowering;
		const outerScope = lowering.matcherScope;
		lowering.matcherScope = this;
		const { words, block } = definition.line;
		definition.matcher = lowering.within(undefined, () =>
			lowering.matcherExpression(words.slice(1), block, definition.name.slice(1)),
		);
		if (definition.matcher) lowering.origin(definition.matcher, definition.line.span);
		lowering.matcherScope = outerScope;
		definition.state = 'done';
		definition.matcherCount = lowering.matcherLimits.matcherCount - matcherCountBefore;
		return definition.matcher;
	}

	#findDefinition(name: string): Definition | undefined {
		const definition = this.#definitions.get(name);
		if (definition || !this.#parent) return definition;
		return this.#parent.#findDefinition(name);
	}

	#ownerOf(name: string): MatcherScope {
		if (this.#definitions.has(name) || !this.#parent) return this;
		return this.#parent.#ownerOf(name);
	}
}
