defmodule Nx.Vulkan.HMC.Progress do
  @moduledoc false
  # Tells a function, or a person at a terminal, how far a run is. An event is a map:
  # phase (:warmup or :sampling), iteration and iterations (of the phase), done and total (of the run), chains, divergences
  # (of the phase so far), leapfrogs (of the last iteration, all chains), elapsed_ms.

  @compile {:no_warn_undefined, :prim_tty}

  # Events come at most this often, but for the first and last of a phase.
  @every_ms 100

  # The line fits 80 columns.
  @bar 16

  defstruct [:fun, :started, :total, :warmup, last: 0, divergences: 0]

  def new(opts) do
    %__MODULE__{
      fun: reporter(opts[:progress]),
      started: System.monotonic_time(:millisecond),
      total: opts[:warmup] + opts[:draws],
      warmup: opts[:warmup]
    }
  end

  defp reporter(fun) when is_function(fun, 1), do: fun
  defp reporter(true), do: if(terminal?(), do: &__MODULE__.bar/1)
  defp reporter(false), do: nil

  @doc """
  Reports iteration `iteration` of `phase`, unless it is too soon. `divergent` chains add to the divergences of the
  phase, `facts` go to the event.
  """
  def tick(%__MODULE__{fun: nil} = progress, _phase, _iteration, _divergent, _facts), do: progress

  def tick(%__MODULE__{} = progress, phase, iteration, divergent, facts) do
    divergences = divergent + if(iteration == 1, do: 0, else: progress.divergences)
    iterations = if phase == :warmup, do: progress.warmup, else: progress.total - progress.warmup
    elapsed = System.monotonic_time(:millisecond) - progress.started
    progress = %{progress | divergences: divergences}

    if iteration in [1, iterations] or elapsed - progress.last >= @every_ms do
      progress.fun.(
        Map.merge(facts, %{
          phase: phase,
          iteration: iteration,
          iterations: iterations,
          done: iteration + if(phase == :warmup, do: 0, else: progress.warmup),
          total: progress.total,
          divergences: divergences,
          elapsed_ms: elapsed
        })
      )

      %{progress | last: elapsed}
    else
      progress
    end
  end

  @doc "Draws the bar for `event` on standard error, over the one before."
  def bar(event) do
    ending = if event.done == event.total, do: "\n", else: ""
    IO.write(:stderr, ["\r", line(event), "\e[K", ending])
  rescue
    # A terminal that went away is no reason to lose the draws.
    ErlangError -> :ok
  end

  @doc "Leaves the line of a bar that will not be full."
  def abort(%__MODULE__{fun: fun, last: last}) do
    if fun == (&__MODULE__.bar/1) and last > 0, do: IO.write(:stderr, "\n")
  end

  @doc "The line that the bar shows for `event`."
  def line(event) do
    full = div(@bar * event.done, event.total)
    rate = event.done * 1000 / max(event.elapsed_ms, 1)
    left = (event.total - event.done) / max(rate, 1.0e-9)

    [
      String.pad_trailing(to_string(event.phase), 9),
      [String.duplicate("█", full), String.duplicate("░", @bar - full)],
      " #{event.done}/#{event.total} x #{event.chains}, #{if rate < 10, do: Float.round(rate, 1), else: round(rate)}/s, ",
      "#{event.divergences} divergent, #{eta(left)}"
    ]
    |> IO.iodata_to_binary()
  end

  defp eta(seconds) when seconds >= 360_000, do: "days left"

  defp eta(seconds) do
    seconds = ceil(seconds)
    two = &String.pad_leading("#{&1}", 2, "0")
    "#{div(seconds, 3600)}:#{two.(div(rem(seconds, 3600), 60))}:#{two.(rem(seconds, 60))} left"
  end

  # OTP 25 cannot ask about standard error alone.
  defp terminal? do
    :prim_tty.isatty(:stderr) == true
  rescue
    UndefinedFunctionError -> IO.ANSI.enabled?()
  end
end
