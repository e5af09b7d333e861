/** Builds sample requests for hosts and paths that match given patterns. */
import type { ListenerSpec, Plan } from '../../codegen/plan/plan.ts';
import type { Matcher } from '../../document/document.ts';
import { type DryRunRequest, isRequestUrl, parseRequestUrl } from '../../dry-run/dry-run-request.ts';
import { fakeExchange } from '../../dry-run/fake-exchange.ts';
import type { Request } from '../../exchange/exchange.ts';
import { pathsOf } from '../../modules/registry/matchers.ts';
import { branchesOf } from './answering.ts';
import { assertedMatchers, type WalkedStep } from './walk-document.ts';

/** Returns a host that a pattern matches; for '', a host that no pattern matches. */
export function sampleHost(pattern: string): string {
	return pattern === '' ? 'host.invalid' : pattern.replaceAll('*', 'any-label');
}

/** Returns a GET request for a URL; undefined if it is not a valid URL. */
export function sampleGet(text: string): DryRunRequest | undefined {
	const url = parseRequestUrl(text);
	if (!isRequestUrl(url)) return undefined;
	return { method: 'GET', url, headers: [], body: undefined, from: undefined, at: undefined };
}

/** Returns a GET request for `/` at a host. */
export function sampleRequest(listener: ListenerSpec, host: string): Request {
	const shown = host.includes(':') ? `[${host}]` : host;
	return fakeExchange(sampleGet(`${listener.scheme}://${shown}:${listener.port}/`)!, listener).request;
}

/** Returns the URL prefixes, without a path, under which a site is served. */
export function originsOf(plan: Plan, site: number): string[] {
	const origins: string[] = [];
	for (const { scheme, port, sites, host: bound } of plan.listeners) {
		for (const { site: index, hosts } of sites) {
			if (index !== site) continue;
			const host = hosts[0] === undefined ? sampleHost(bound === '' ? '' : bound) : sampleHost(hosts[0]);
			const implied = port === (scheme === 'http' ? 80 : 443);
			origins.push(`${scheme}://${host.includes(':') ? `[${host}]` : host}${implied ? '' : `:${port}`}`);
		}
	}
	return origins;
}

/**
 * Returns paths that reach a step, according to the path matchers of it and of the steps that contain it; `/` if there are none.
 */
export function samplePaths(step: WalkedStep, conditions: readonly Matcher[]): string[] {
	const paths = new Set<string>();
	for (const condition of conditions) {
		for (const { matcher } of assertedMatchers(condition, '')) {
			for (const pattern of pathsOf(matcher)?.values ?? []) {
				if (pattern.includes('{') || pattern.includes('%')) continue;
				paths.add(pathOf(pattern.replace(/\*$/, '')));
				if (pattern.endsWith('*')) paths.add(pathOf(pattern));
			}
		}
	}
	if (paths.size === 0) paths.add('/');
	return [...paths].slice(0, step.pipeline.ofErrors ? 0 : 8);
}

/** Returns the conditions of a step and of the steps that contain it, innermost first. */
export function conditionsOf(walked: WalkedStep): Matcher[] {
	const conditions: Matcher[] = [];
	for (let at: WalkedStep | undefined = walked, inner = ''; at; inner = at.pointer, at = at.pipeline.owner) {
		if (at.step.when) conditions.push(at.step.when);
		const within = inner.slice(at.pointer.length);
		const branch = branchesOf(at.step).find(({ pointer }) => within.startsWith(`${pointer}/pipeline/`));
		if (branch?.when) conditions.push(branch.when);
	}
	return conditions;
}

function pathOf(pattern: string): string {
	const path = pattern
		.replaceAll('*', 'any')
		.replaceAll('?', 'x')
		.replace(/\[([^\]]).*?\]/g, '$1');
	return path.startsWith('/') ? path : `/${path}`;
}
