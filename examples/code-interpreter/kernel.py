# Runs once in each new kernel for Python.
def _prepare():
    import os

    from IPython import get_ipython
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    FIGURE = ("matplotlib.figure", "Figure")

    class Data(BaseFormatter):
        format_type = Unicode("e2b/data")
        print_method = ObjectName("_repr_e2b_data_")
        _return_type = dict

    class Chart(BaseFormatter):
        format_type = Unicode("e2b/chart")
        print_method = ObjectName("_repr_e2b_chart_")
        _return_type = dict

        # matplotlib's own set-up takes figures out of all formatters, so this finds figures by their name.
        def __call__(self, shown):
            if any((kind.__module__, kind.__name__) == FIGURE for kind in type(shown).__mro__):
                return chart_of(shown)
            return super().__call__(shown)

    def values_of(frame):
        import json

        def column(at):
            return json.loads(frame.iloc[:, at].to_json(orient="values", date_format="iso", default_handler=str))

        return {str(name): column(at) for at, name in enumerate(frame.columns)}

    def chart_of(figure):
        import json

        try:
            from e2b_charts import chart_figure_to_dict

            return json.loads(json.dumps(chart_figure_to_dict(figure), default=str))
        except Exception:
            # A figure of an unknown kind keeps its image.
            return {}

    formatters = get_ipython().display_formatter.formatters
    for kind, formatter in (("e2b/data", Data()), ("e2b/chart", Chart())):
        formatters[kind] = formatter
    formatters["e2b/data"].for_type_by_name("pandas.core.frame", "DataFrame", values_of)
    formatters["e2b/data"].for_type_by_name("pandas", "DataFrame", values_of)

    before = {}

    def set_variables(values):
        before.update({name: os.environ.get(name) for name in values})
        os.environ.update(values)

    def put_back():
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        before.clear()

    get_ipython().user_ns_hidden.update(__threadbox_variables__=set_variables, __threadbox_variables_back__=put_back)
    get_ipython().user_ns.update(__threadbox_variables__=set_variables, __threadbox_variables_back__=put_back)


_prepare()
del _prepare
