// A context as the program gives it, and as the addon takes it.

/** Who the work of a sample is for. Ids are hexadecimal digits, as trace contexts have them, or numbers. */
export interface SampleContext {
  /** 32 hexadecimal digits. */
  traceId?: string;
  /** 16 hexadecimal digits, or a number. */
  spanId?: string | bigint;
  /** The span that is the root of the trace in this process. */
  rootSpanId?: string | bigint;
  /** The route or operation that the local root stands for; may be told later by setEndpoint(). */
  endpoint?: string;
  tags?: Readonly<Record<string, string>>;
}

export function idText(id: string | bigint | undefined): string | undefined {
  return typeof id === 'bigint' ? BigInt.asUintN(64, id).toString(16) : id;
}

/** Names and values in turn. */
export function tagList(tags: Readonly<Record<string, string>> | undefined): string[] | undefined {
  if (tags === undefined) return undefined;
  const list: string[] = [];
  for (const name of Object.keys(tags)) {
    const value: unknown = tags[name];
    if (value !== undefined && value !== null) list.push(name, String(value));
  }
  return list;
}

/** What the addon reads of an answer of attach()'s function. */
export function contextList(
  context: SampleContext | undefined,
): ReadonlyArray<string | undefined> | undefined {
  if (context === undefined || context === null) return undefined;
  const list: (string | undefined)[] = [
    context.traceId,
    idText(context.spanId),
    idText(context.rootSpanId),
    context.endpoint,
  ];
  const tags = tagList(context.tags);
  return tags === undefined ? list : list.concat(tags);
}
