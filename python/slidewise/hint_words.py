"""Words of other libraries, and what they are in slidewise.

The words of pandas, polars, SQL, DuckDB, ClickHouse, Spark, Flink, Beam and Kafka
Streams, in lower case and without underscores: `argMax` and `ARG_MAX` are one word.
"""

__all__ = ["ADVICE", "ARGUMENTS", "NAMES", "WAYS"]

_LENGTHS = ("window", "windows", "range", "last", "ranges")

# Arguments, and the words for them. The first argument that a function has is meant.
_ARGUMENTS: dict[tuple[str, ...], str] = {
    ("aggs", "agg"): "agg aggs aggregate aggregates aggregations expr exprs "
    "expressions features func funcs functions metrics",
    ("arrival",): "arrived arrivaltime createdat ingestiontime knowledgetime "
    "processingtime",
    ("at",): "asof entitydf labels points queryat spine",
    ("by",): "entity entities group groupby groupkey groups key keyby keys over "
    "partition partitionby",
    ("closed",): "bounds include inclusive",
    ("checkpoint",): "checkpointdir checkpointlocation",
    ("column",): "col field of",
    ("emit",): "emitmode outputmode trigger",
    ("empty",): "emitempty fillgaps includeempty keepempty",
    ("every",): "advance advanceby hop hopinterval hopsize slide slideby slideduration "
    "slideinterval step stride",
    ("keep",): "expire expiry horizon retain retention stateretention statettl ttl",
    ("late", "offset"): "delay lag",
    ("late",): "allowedlateness grace graceperiod lateness maxdelay maxlateness "
    "maxoutoforderness outoforderness tolerance watermark watermarkdelay",
    ("late_rows",): "latedata latepolicy onlate ontoolate sideoutput "
    "sideoutputlatedata",
    ("memory",): "maxmemory mem memorylimit",
    ("min_rows",): "mincount minobs minperiods minsamples minsize",
    ("nan",): "nanpolicy nans skipna skipnan",
    ("offset",): "base loffset origin shift startby",
    ("on",): "date datecolumn datetime eventtime index indexcolumn orderby sort sortby "
    "sortkey time timecol timecolumn timefield timestamp timestampcolumn "
    "timestampfield ts",
    ("output",): "out outfile outputfile outputpath",
    ("q",): "p percentile percentiles prob probability quantiles",
    ("then_by",): "secondaryorder tiebreaker",
    ("threads",): "cores njobs nthreads numthreads parallel parallelism workers",
    ("time_format",): "dateformat datetimeformat timestampformat",
    ("ties",): "peers tiebreak tiesmethod",
    ("unique_by",): "dedup dedupby dedupe dedupeby distinct distinctby distincton "
    "dropduplicates id idcol idcolumn idcolumns idempotencykey ids unique",
    ("where",): "condition filter mask predicate when",
    _LENGTHS: "duration freq interval length lookback period periods range ranges rule "
    "size span timeframe width windowduration windowlength windowsize",
    ("window", "range", "last", "ranges"): "windows",
    ("windows", "range", "last", "ranges"): "window",
}
ARGUMENTS = {
    word: meant for meant, words in _ARGUMENTS.items() for word in words.split()
}

# Arguments without an equivalent: one that the function has, and the advice for it.
ADVICE: dict[str, dict[str, str]] = {
    "at": {
        "partitions": "on Spark a result belongs to a row of the DataFrame: add the "
        "labels to it as rows, or use slidewise.rolling(..., at=) in process",
        "every": "windows of hopping lie on a grid: for those that end at the rows of "
        "another table there is sw.rolling(..., at=)",
    },
    "center": {
        "ties": "move the windows by half of their length, such as offset='-30m' with "
        "windows='1h'"
    },
    "ddof": {"aggs": "it belongs in the aggregation, as in sw.stddev('x', ddof=0)"},
    "every": {
        "windows": "for hopping windows there is sw.hopping(..., window=, every=)"
    },
    "gap": {"window": "for sessions there is window=sw.session('30m')"},
    "ignorenulls": {"aggs": "nulls are always skipped"},
    "interpolation": {"aggs": "it belongs in the aggregation: sw.quantile"},
    "label": {
        "every": "both ends of a window are columns of the result: window_start and "
        "window_end"
    },
    "late": {
        "aggs": "only streams have late rows: see sw.KeyedWindows and slidewise.spark; "
        "in a table every row is there"
    },
    "quantile": {"aggs": "it belongs in the aggregation, as in sw.quantile('x', 0.9)"},
    "sessiongap": {"window": "for sessions there is window=sw.session('30m')"},
    "threads": {
        "partitions": "on Spark a task computes in one thread: partitions= is the "
        "number of tasks"
    },
    "ttl": {"late": "rows that no window can hold any more leave by themselves"},
    "weights": {"aggs": "for weights there is sw.weighted_mean('x', by='w')"},
    "where": {"aggs": "it belongs in the aggregation: sw.sum('x', where='flag')"},
}
ADVICE["filter"] = ADVICE["where"]

# Names in slidewise, perhaps with arguments, and the words for them.
_NAMES = {
    "Window": "slidingwindow",
    "aggregation": "agg aggregate aggregator apply custom fold mapelements mapgroups "
    "reduce transform udaf udf",
    "all": "alltrue booland every logicaland",
    "any": "anytrue boolor logicalor some",
    "approx_count_distinct": "approxdistinct approxnunique hll hllsketch hllsketchagg "
    "hyperloglog ndv uniq uniqcombined uniqcombined64 uniqhll12 uniqtheta",
    "approx_quantile": "approxmedian approxpercentile ddsketch kll percentileapprox "
    "quantilebfloat16 quantiledd quantilegk quantiletdigest quantiletiming "
    "reservoirquantile tdigest",
    "arg_max": "argmaximum idxmax maxby maxrow",
    "arg_min": "argminimum idxmin minby minrow",
    "bit_and": "bitandagg bitwiseand groupbitand",
    "bit_or": "bitoragg bitwiseor groupbitor",
    "bit_xor": "bitwisexor bitxoragg groupbitxor",
    "bloom": "bloomfilter bloomfilteragg",
    "bottom_k": "bottomn minn nsmallest smallest",
    "collect": "arrayagg arrayconcatagg collectlist grouparray implode jsonagg "
    "jsonarrayagg list tolist values",
    "collect_distinct": "arrayuniqueagg collectset distinct groupuniqarray set toset "
    "unique uniquevalues",
    "concat": "concatagg groupconcat join listagg strconcat strjoin stringagg xmlagg",
    "correlation": "corr corrcoef pearson pearsonr",
    "count": "cnt countall countstar len length n nobs nrow rowcount rowscount size",
    "count(where='...')": "countif counttrue",
    "count_distinct": "countunique distinctcount nunique uniqexact uniquecount",
    "count_min": "cms countminsketch",
    "covariance": "cov covar covarsamp",
    "covariance(ddof=0)": "covarpop",
    "decayed_count": "ewmcount exponentialcount",
    "decayed_mean": "ema ewm ewma ewmmean ewmmeanby exponentialmovingaverage",
    "decayed_sum": "ewmsum exponentialtimedecayedsum",
    "decayed_variance": "ewmvar",
    "drawdown": "maxdrawdown",
    "entropy": "shannon shannonentropy",
    "first": "anyvalue arbitrary earliest firstvalue",
    "first_k": "firstn head",
    "geometric_mean": "geomean gmean",
    "heavy_hitters": "approxtopcount approxtopk frequentitems mostfrequent spacesaving "
    "topfrequent topkapprox",
    "increase": "deltasum",
    "histogram": "bins hist histogramnumeric widthbucket",
    "hopping": "datetrunc grouper groupbydynamic hop hoppingwindow resample "
    "timebucket timewindow tumble tumbling tumblingwindow",
    "integral": "trapz trapezoid",
    "intercept": "regrintercept",
    "kurtosis": "kurt kurtsamp",
    "kurtosis(ddof=0)": "kurtosispop kurtpop",
    "lag": "previous prev shift",
    "last": "anylast lastvalue latest mostrecent",
    "last_k": "grouparraylast lastn lastvalues tail",
    "longest_run": "longeststreak runlength streak",
    "max": "maximum",
    "mean": "average avg favg",
    "median": "medianexact",
    "min": "minimum",
    "mode": "anyheavy mostcommon",
    "ohlc": "candle candlestick",
    "product": "prod",
    "quantile": "percentile percentilecont quantilecont quantileexact "
    "quantileexactinclusive",
    "r_squared": "rsq rsquare regrr2",
    "range": "maxminusmin peaktopeak ptp",
    "rank": "rowrank",
    "rank(method='dense')": "denserank",
    "rolling": "rollingwindow rollingby",
    "rows": "lastrows nrows",
    "session": "sessions sessionwindow",
    "skewness": "skew skewsamp",
    "skewness(ddof=0)": "skewnesspop skewpop",
    "slope": "linregr linearregression regrslope simplelinearregression",
    "stddev": "sd std stdev stddevsamp",
    "stddev(ddof=0)": "stddevpop",
    "sum": "fsum kahansum sumkahan sumwithoverflow total",
    "sum_of_squares": "sumsq sumsquares sumsquared",
    "top_k": "largest maxn nlargest topn",
    "value_counts": "frequencies frequency mapcount summap",
    "variance": "var varsamp",
    "variance(ddof=0)": "varpop variancepop",
    "weighted_mean": "avgweighted vwap wavg weightedaverage weightedavg wmean",
}
NAMES = {word: meant for meant, words in _NAMES.items() for word in words.split()}

_ALL_SO_FAR = (
    "windows=sw.unbounded() holds all rows so far: give it sw.sum, sw.max, ..."
)
_OWN = "there is none; sw.aggregation makes one of your own"

# Words without an equivalent, and the advice.
_WAYS = {
    "subtract sw.last('x') with closed='left', the value before the row": "change "
    "diff difference pctchange rate runningdifference",
    "sw.collect('x') has all values of a window, in order of time": "grouparraysorted "
    "nth nthvalue",
    _ALL_SO_FAR: "cumcount cummax cummin cumprod cumsum cumulative cumulativemax "
    "cumulativesum expanding runningsum runningtotal unbounded unboundedpreceding",
    "sw.count() with ties='rows' over windows=sw.unbounded() numbers rows": "rownumber",
    "aggregate the list of sw.collect_distinct": "avgdistinct meandistinct sumdistinct",
    "sw.percent_rank gives the share of other values below; sw.quantile values at "
    "shares": "cumedist ntile",
    "divide sw.stddev by the square root of sw.count": "sem stderr standarderror",
    "sw.quantile takes several, as does sw.approx_quantile": "percentiles "
    "quantiles quantilesexact quantilestdigest",
    "sw.quantile(..., interpolation='lower'), 'higher' or 'nearest' gives a value of "
    "the column": "percentiledisc quantiledisc quantileexacthigh quantileexactlow "
    "quantilelow quantilehigh",
    "sw.top_k gives the largest values, sw.heavy_hitters the most frequent": "topk",
    "subtract sw.count('x') from sw.count()": "countnull nullcount",
    "windows end at the rows of another table with sw.rolling(..., at=)": ""
    "asof asofjoin joinasof mergeasof pointintime",
    "sw.rolling has a window per row, sw.hopping windows on a grid": "over sliding",
    _OWN: "autocorr lead mad mae mape mediandeviation meanabsolutedeviation "
    "rms rmse sketch trimmedmean zscore",
}
WAYS = {word: way for way, words in _WAYS.items() for word in words.split()}
